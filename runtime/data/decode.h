// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared declarations of the image decoders.
#ifndef RUNTIME_DECODE_H
#define RUNTIME_DECODE_H

#include "runtime/data/data.h"

// ---- decode.c ----

// An image on its way from a file to the pixels of a sample.
typedef struct {
    const RtImageDecoder *decoder;
    const RtFiles *files;
    int file;
    size_t left;         // bytes of the file after the buffer
    const uint8_t *next; // in the buffer
    size_t ready;        // bytes from there on
    bool failed;         // reading the file failed
    int reason;          // errno of that; 0: truncated
    bool unknown;        // its library is missing
    int h, w;            // of raw pixels; 0: a file of some format
    int orientation;     // of Exif, 1 to 8; 0: unknown
    uint8_t *to;
    uint8_t *stored;  // pixels before they are turned; `to` if they are upright
    RtResize *resize; // receives rows
    size_t reserved;  // bytes acquired from the shared memory
    uint8_t buffer[32 << 10];
} RtDecoding;

// Reads the next bytes into the buffer; false at the end of the file and after
// an error.
bool rt_image_fill(RtDecoding *d);
// Reads the rest of the file, which the caller frees; NULL with *e filled.
uint8_t *rt_image_rest(RtDecoding *d, size_t *bytes, RtError *e);

// Refuses a file with too many pixels.
bool rt_image_begin(RtDecoding *d, uint32_t h, uint32_t w, RtError *e);
// The rows and columns of the result before it is turned upright.
void rt_image_stored(const RtDecoding *d, int *h, int *w);
// Undoes the following.
void rt_image_release(RtDecoding *d);
// Creates d->resize for h x w pixels; waits for shared memory for it and
// `bytes` more.
bool rt_image_reserve(RtDecoding *d, int h, int w, size_t bytes, RtError *e);

// ---- resize.c ----

// Resizes an image of h x w pixels to `rows` x `columns`.  NULL: no memory.
RtResize *rt_resize_new(int h, int w, int rows, int columns, uint8_t *to);
void rt_resize_free(RtResize *r);
// Consumes the next row from the top; the last one completes the result.
void rt_resize_row(RtResize *r, const uint8_t *pixel);
// The bytes that it allocates.
size_t rt_resize_bytes(int h, int w, int rows, int columns);

// ---- planes.c, jpeg.c, png.c, webp.c ----

// Raw pixels of one byte: a plane, or one for each of three colours.
bool rt_planes_decode(RtDecoding *d, RtError *e);
bool rt_jpeg_decode(const RtJpeg *j, RtDecoding *d, RtError *e);
bool rt_png_decode(const RtPng *p, RtDecoding *d, RtError *e);
bool rt_webp_decode(const RtWebp *w, RtDecoding *d, RtError *e);

#endif
