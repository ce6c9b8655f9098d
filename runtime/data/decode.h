// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the files that decode images.
#ifndef RUNTIME_DECODE_H
#define RUNTIME_DECODE_H

#include "runtime/data/data.h"

// ---- decode.c ----

// An image on its way from a file to a square.
typedef struct {
    const RtImageDecoder *decoder;
    const RtFiles *files;
    int file;
    size_t left;         // bytes of the file behind those in the buffer
    const uint8_t *next; // of the buffer
    size_t ready;        // bytes from there on
    bool failed;         // the file cannot be read
    int reason;          // why, as errno; 0: it ends early
    bool unknown;        // the library for it is missing
    uint8_t *to;
    RtResize *resize; // takes its rows
    size_t reserved;  // memory that it has of what all share
    uint8_t buffer[32 << 10];
} RtDecoding;

// The file's next bytes take the place of those in the buffer; false at its end
// and where it cannot be read.
bool rt_image_fill(RtDecoding *d);

// Whether a file may have so many pixels.
bool rt_image_begin(RtDecoding *d, uint32_t h, uint32_t w, RtError *e);
// Makes d->resize for rows of an image of h x w, once there is memory for it
// and so many bytes besides.
bool rt_image_reserve(RtDecoding *d, int h, int w, size_t bytes, RtError *e);

// ---- resize.c ----

// An image of h x w pixels that becomes size x size pixels.  NULL: no memory.
RtResize *rt_resize_new(int h, int w, int size, uint8_t *to);
void rt_resize_free(RtResize *r);
// Takes the next row, from the top; with the last one the square is whole.
void rt_resize_row(RtResize *r, const uint8_t *pixel);
// The memory that it takes.
size_t rt_resize_bytes(int h, int w, int size);

// ---- jpeg.c, png.c ----

bool rt_jpeg_decode(const RtJpeg *j, RtDecoding *d, RtError *e);
bool rt_png_decode(const RtPng *p, RtDecoding *d, RtError *e);

#endif
