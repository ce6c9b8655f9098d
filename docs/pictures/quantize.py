"""Makes a PNG file small: a palette of its commonest colours, and a line of text
that a test can read.

quantize.py IN.png OUT.png COLOURS TEXT
"""
import collections
import struct
import sys
import zlib


def chunks(data):
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + length]
        at += 12 + length


def unfiltered(data, width, height, step):
    """Rows of pixels: the five filters of the PNG specification, undone."""
    rows, stride, above = [], width * step, bytearray(width * step)
    for y in range(height):
        at = y * (stride + 1)
        kind, row = data[at], bytearray(data[at + 1:at + 1 + stride])
        for i in range(stride if kind else 0):
            left = row[i - step] if i >= step else 0
            corner = above[i - step] if i >= step else 0
            if kind == 1:
                row[i] = row[i] + left & 255
            elif kind == 2:
                row[i] = row[i] + above[i] & 255
            elif kind == 3:
                row[i] = row[i] + (left + above[i]) // 2 & 255
            else:
                guess = left + above[i] - corner
                near = min((left, above[i], corner), key=lambda v: abs(guess - v))
                row[i] = row[i] + near & 255
        rows.append(row)
        above = row
    return rows


def palette_of(counts, size):
    """The commonest colours that are far enough from one another."""
    chosen = []
    for colour, _ in counts.most_common():
        if all(distance(colour, c) > 300 for c in chosen):
            chosen.append(colour)
        if len(chosen) == size:
            break
    return chosen


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def main(source, out, colours, text):
    with open(source, "rb") as file:
        data = file.read()
    width, height, _, kind = struct.unpack(">IIBB", data[16:26])
    step = {2: 3, 6: 4}[kind]
    body = zlib.decompress(b"".join(b for k, b in chunks(data) if k == b"IDAT"))
    rows = [[tuple(row[i:i + 3]) for i in range(0, len(row), step)]
            for row in unfiltered(body, width, height, step)]
    counts = collections.Counter(p for row in rows for p in row)
    palette = palette_of(counts, int(colours))
    nearest = {c: min(range(len(palette)), key=lambda i: distance(c, palette[i])) for c in counts}
    packed = b"".join(b"\0" + bytes(nearest[p] for p in row) for row in rows)
    with open(out, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
                   chunk(b"PLTE", b"".join(map(bytes, palette))) +
                   chunk(b"tEXt", b"Description\0" + text.encode("latin-1", "replace")) +
                   chunk(b"IDAT", zlib.compress(packed, 9)) + chunk(b"IEND", b""))


if __name__ == "__main__":
    main(*sys.argv[1:])
