// Two memories that are to be the same, byte by byte, and what is said of a
// difference.
//
// One that is no number may have other bits on a GPU.  What is no number is a
// matter of the element's type, so that each place is read as what these
// launches left there.
#include "tests/codegen/bits/bits.h"

#include "passes/plan/group.h"
#include "runtime/runtime.h"

#include <math.h>
#include <string.h>

enum { MAX_REPORT = 1500 };

// What a byte of memory belongs to.
typedef struct {
    const char *what;
    RtType type;
    size_t offset, bytes;
} Owner;

static bool is_in(const Owner *p, size_t at) {
    return at >= p->offset && at < p->offset + p->bytes;
}

// Where these launches stored nothing, what differs is in room that a kernel
// has for itself, which is f32 and may be where another tensor was before.
static Owner owner_of(const RtPlan *plan, const Launches *of, size_t at) {
    Owner found = {"a number that is kept for a while", RT_F32, at / 4 * 4, 4};
    for (int i = 0; i < plan->num_states; i++) {
        const RtState *s = &plan->state[i];
        Owner p = {s->name, s->type, s->offset, rt_state_bytes(s)};
        if (is_in(&p, at))
            found = p;
    }
    for (int i = 0; i < plan->num_stored; i++) {
        const RtStored *t = &plan->stored[i];
        Owner p = {t->what, t->type, t->offset,
                   (size_t)t->count * rt_type_bytes(t->type)};
        if (t->step == of->step && t->launch >= of->first &&
            t->launch <= of->last && is_in(&p, at))
            found = p;
    }
    return found;
}

// Blocks of a GPU count each other, at barriers of the grid too: no number of
// the model.
static bool is_ticket(const Owner *p) {
    return strncmp(p->what, COUNTERS, strlen(COUNTERS)) == 0;
}

void bits_compare(const RtPlan *plan, const Launches *of, const char *left,
                  const char *meant, const char *kernel, Text *report) {
    size_t next;
    for (size_t at = 0; at < plan->arena_bytes && report->length < MAX_REPORT;
         at = next) {
        next = at + 1;
        if (left[at] == meant[at])
            continue;
        Owner p = owner_of(plan, of, at);
        size_t each = rt_type_bytes(p.type);
        int64_t i = (int64_t)((at - p.offset) / each);
        double found = rt_number(left + p.offset, p.type, i);
        double right = rt_number(meant + p.offset, p.type, i);
        next = p.offset + (size_t)(i + 1) * each;
        if (!is_ticket(&p) && (!isnan(found) || !isnan(right)))
            text_add(report, "%s: %s[%lld] is %.9g, should be %.9g\n", kernel,
                     p.what, (long long)i, found, right);
    }
}
