// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Datum: the message in which Caffe keeps an image and its class
// (caffe.proto; the wire format is in
// protobuf.dev/programming-guides/encoding).

#include "runtime/data/data.h"

enum { // fields
    CHANNELS = 1,
    HEIGHT = 2,
    WIDTH = 3,
    DATA = 4,
    LABEL = 5,
    FLOAT_DATA = 6,
    ENCODED = 7,
    NUM_FIELDS
};

enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 }; // wire types

typedef struct {
    RtReader *file;
    int64_t at, end;
    RtError *e;
} Message;

static bool damaged(Message *m) {
    return rt_fail(m->e, EXIT_DATA, "it is no message Datum of Caffe");
}

static bool varint(Message *m, uint64_t *value) {
    uint8_t byte = 0x80;
    *value = 0;
    for (int shift = 0; byte >= 0x80; shift += 7) {
        if (shift > 63 || m->at >= m->end)
            return damaged(m);
        if (!rt_reader_copy(m->file, m->at++, 1, &byte, m->e))
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return true;
}

// The number of a field, or the count of its bytes, from m->at on.
static bool field(Message *m, int wire, uint64_t *value) {
    switch (wire) {
    case VARINT:
        return varint(m, value);
    case EIGHT_BYTES:
    case FOUR_BYTES:
        *value = wire == EIGHT_BYTES ? 8 : 4;
        break;
    case LENGTH:
        if (!varint(m, value))
            return false;
        break;
    default:
        return damaged(m);
    }
    return *value <= (uint64_t)(m->end - m->at) || damaged(m);
}

// Takes a field whose bytes begin at m->at.
static void keep(const Message *m, uint64_t tag, uint64_t value, RtDatum *to) {
    int64_t *const number[] = {[CHANNELS] = &to->channels,
                               [HEIGHT] = &to->height,
                               [WIDTH] = &to->width,
                               [LABEL] = &to->label,
                               [ENCODED] = &to->encoded};
    uint64_t id = tag >> 3;
    int wire = (int)(tag & 7);
    if (wire == VARINT && id < NUM_FIELDS && number[id] != NULL)
        *number[id] = (int64_t)value;
    if (wire == LENGTH && id == DATA) {
        to->first = m->at;
        to->bytes = (int64_t)value;
    }
    to->has_floats |= id == FLOAT_DATA;
}

bool rt_datum_read(RtReader *file, int64_t first, int64_t bytes, RtDatum *to,
                   RtError *e) {
    enum { MAX_FIELDS = 64 }; // a number of float_data is a field
    Message m = {file, first, first + bytes, e};
    *to = (RtDatum){.channels = 0};
    for (int fields = 0; m.at < m.end && !to->has_floats; fields++) {
        if (fields == MAX_FIELDS)
            return damaged(&m);
        uint64_t tag, value;
        if (!varint(&m, &tag) || !field(&m, (int)(tag & 7), &value))
            return false;
        keep(&m, tag, value, to);
        if ((tag & 7) != VARINT)
            m.at += (int64_t)value;
    }
    return true;
}
