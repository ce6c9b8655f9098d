// Tile frame: the local memory of a thread in a cubin, which tileiras does not
// report: spilled registers are there.
//
// A cubin is an ELF file.  Its section .nv.info is a list of attributes: a byte
// for the form, a byte for the attribute, two bytes for the size of its value
// or for the value itself.  cuobjdump --dump-elf prints it, with the names
// below.
#include "tools/tile.h"

#include <elf.h>
#include <string.h>

enum { EIFMT_SVAL = 4, EIATTR_FRAME_SIZE = 0x11, HEAD = 4 };

static const uint32_t UNKNOWN = UINT32_MAX; // no candidate is worse

// The largest frame in a section: its values are a symbol and bytes.
static uint32_t frame_of(const char *at, const char *end) {
    uint32_t most = 0, value[2];
    while (end - at >= HEAD) {
        uint16_t size = 0;
        if (at[0] == EIFMT_SVAL)
            memcpy(&size, at + 2, sizeof size);
        if (end - at - HEAD < size)
            break;
        if (at[1] == EIATTR_FRAME_SIZE && size == sizeof value) {
            memcpy(value, at + HEAD, sizeof value);
            most = value[1] > most ? value[1] : most;
        }
        at += HEAD + size;
    }
    return most;
}

static bool is_within(const RtCode *code, uint64_t offset, uint64_t bytes) {
    return offset <= code->length && bytes <= code->length - offset;
}

static bool section_at(const RtCode *code, const Elf64_Ehdr *h, int i,
                       Elf64_Shdr *out) {
    uint64_t at = h->e_shoff + (uint64_t)i * sizeof *out;
    if (i >= h->e_shnum || h->e_shentsize != sizeof *out ||
        !is_within(code, at, sizeof *out))
        return false;
    memcpy(out, code->bytes + at, sizeof *out);
    return true;
}

static bool has_bytes(const RtCode *code, const Elf64_Shdr *s) {
    return is_within(code, s->sh_offset, s->sh_size);
}

static bool is_named(const RtCode *code, const Elf64_Shdr *names,
                     const Elf64_Shdr *s, const char *name) {
    size_t length = strlen(name) + 1;
    return s->sh_name + length <= names->sh_size &&
           memcmp(code->bytes + names->sh_offset + s->sh_name, name, length) ==
               0;
}

uint32_t tile_frame(const RtCode *cubin) {
    Elf64_Ehdr h;
    Elf64_Shdr names, s;
    if (cubin->length < sizeof h || memcmp(cubin->bytes, ELFMAG, SELFMAG) != 0)
        return UNKNOWN;
    memcpy(&h, cubin->bytes, sizeof h);
    if (!section_at(cubin, &h, h.e_shstrndx, &names) ||
        !has_bytes(cubin, &names))
        return UNKNOWN;
    for (int i = 0; section_at(cubin, &h, i, &s); i++)
        if (is_named(cubin, &names, &s, ".nv.info") && has_bytes(cubin, &s))
            return frame_of(cubin->bytes + s.sh_offset,
                            cubin->bytes + s.sh_offset + s.sh_size);
    return UNKNOWN;
}
