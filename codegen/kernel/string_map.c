// String map: FNV-1a with linear probing.

#include "codegen/kernel/string_map.h"

#include <stdint.h>
#include <string.h>

struct MapSlot {
    const char *key;
    void *value;
};

StringMap map_new(Arena *a, int most) {
    size_t size = 16;
    while (size < 2 * (size_t)most)
        size *= 2;
    return (StringMap){a, ARENA_ARRAY(a, size, struct MapSlot), size};
}

void **map_at(StringMap *map, const char *key) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *s = key; *s != '\0'; s++)
        hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
    size_t i = (size_t)(hash ^ hash >> 32) & (map->size - 1);
    while (map->slot[i].key != NULL && strcmp(map->slot[i].key, key) != 0)
        i = (i + 1) & (map->size - 1);
    if (map->slot[i].key == NULL)
        map->slot[i].key = arena_string(map->a, key, strlen(key));
    return &map->slot[i].value;
}
