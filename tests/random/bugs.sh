#!/bin/sh
# How many of the random programs find a bug, for each of some bugs that are
# planted in a copy of the sources, one at a time.
# usage: bugs.sh [COUNT [WORD]]    the first COUNT programs, bugs with WORD
set -eu
count=${1:-2000} word=${2:-}
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git -C "$source" ls-files -z | (cd "$source" && xargs -0 cp --parents -t "$work")
cmake -S "$work" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    ${CCACHE_DIR:+-DCMAKE_C_COMPILER_LAUNCHER=ccache} >/dev/null
export SINTER_SOURCE="$work" SINTER="$work/build/bin/sinter"
export SINTER_LIB="$work/build/lib/sinter" SINTER_VIEW="$work/build/view"
export SINTER_INCLUDE="$work/build/include/sinter" CC=tcc

# WHAT FILE SED: the sources with the edit, and what the programs say.
bug() {
    case $1 in *"$word"*) ;; *) return 0 ;; esac
    cp "$work/$2" "$work/kept"
    sed -i "$3" "$work/$2"
    if cmp -s "$work/$2" "$work/kept"; then
        echo "$1: nothing to edit in $2"
        exit 1
    fi
    if ! cmake --build "$work/build" --target random \
        >"$work/log" 2>&1; then
        cat "$work/log"
        exit 1
    fi
    "$work/build/bin/random" --terse 0 "$count" >"$work/log" 2>&1 || true
    echo "$1: $(tail -n 1 "$work/log" | sed 's/.*; //')"
    cp "$work/kept" "$work/$2" # newer than what was made of the edit
}

bug 'a factor has no gradient' passes/gradients.c \
    '/^static void grad_mul/,/^}/ s/i < 2/i < 1/'
bug 'batch_norm: the gradient of the mean is left out' passes/gradients.c \
    's/NodeId drift = .*/NodeId drift = along;/'
bug 'var: half of its gradient' passes/gradients.c 's|2 / count|1 / count|'
bug 'max: its gradient goes to all but the largest' passes/gradients.c \
    '/^static void grad_max(/,/^}/ s/OP_eq, x(b, 0)/OP_lt, x(b, 0)/'
bug 'the loss scale stays in the gradients' passes/optimizer.c \
    's/loss_scale != NO_NODE && !waits/loss_scale == NO_NODE \&\& !waits/'
bug 'norms: one lane too many at the end' codegen/multi_tensor.c \
    's/+ k < hi ? \$ : 0.0f/+ k <= hi ? $ : 0.0f/'
bug 'broadcasts align the first axes' codegen/index.c \
    's/int from = i + p.rank - operand.rank;/int from = i;/'
bug 'column reductions in act' codegen/grid_reduction.c \
    's/lanes ? "s@\[k\] += \$;" : "s@ += \$;"/lanes ? "{ act h; put_act(\&h, s@[k] + $); s@[k] = get_act(\&h); }" : "{ act h; put_act(\&h, s@ + $); s@ = get_act(\&h); }"/'
bug 'statistics of blocks as if all were as long' codegen/grid_reduction.c \
    's/blocks), ROWS % blocks/blocks), 0 * ROWS % blocks/'
bug 'statistics stored as activations' passes/fuse_cost.c \
    's/f->in_rows\[n\] ||/false ||/'
bug 'states are assigned before all have read them' passes/schedule.c \
    's/updates(&s->group\[ready\[i\]\]) && num_ready > 1/updates(\&s->group[ready[i]]) \&\& num_ready < 1/'
bug 'window indices in a bit too few' passes/bit_packing.c \
    's/indices <= 2 ? 1 : indices <= 4/indices <= 3 ? 1 : indices <= 6/'
bug 'bits of the opposite comparison' passes/bit_packing.c \
    's/{USE_COMPARE, d->op, d->arg\[i\], i}/{USE_COMPARE, d->op, d->arg[i], 1 - i}/'
bug 'a call does not add to what is there' codegen/library_calls.c \
    's/node_int(d, ATTR_accumulate, 0) ? "true"/node_int(d, ATTR_accumulate, 0) > 1 ? "true"/'
bug 'a sum in place of what is still needed' passes/inplace.c \
    '/^static bool dies_there/,/^}/ s/return false/return true/'
bug 'casts to fewer bits and back are left out' passes/simplify.c \
    's/!holds(at(s, n->arg\[0\])->type->dtype,/!holds(F32,/'
bug 'relu after an avg_pool' passes/canonicalize.c \
    's/op != OP_max_pool)/op != OP_max_pool \&\& at(e, n)->op != OP_avg_pool)/'
bug 'a copy of a parameter stays as it was' passes/derive.c \
    's/graph_assign(g, state, graph_pad(.*/(void)none, (void)high, (void)graph_assign(g, state, state);/'
bug 'windows reach beyond the first row' codegen/window.c \
    's/if (w.leaves)/if (w.leaves \&\& w.pad[0] == 0)/'
bug 'made again at another place' passes/fuse_members.c \
    '/^static bool stays_in_place/,/^}/ s/return false/return true/'
bug 'batch_norm of an evaluation is folded with its shift turned' \
    passes/fold_batch_norm.c \
    's/graph_op2(g, OP_sub, now\[s->shift\], moved)/graph_op2(g, OP_add, now[s->shift], moved)/'
bug 'an evaluation prepares values that a batch assigns' passes/batch_invariant.c \
    's/d->op != OP_input \&\& !assigned\[n\]/d->op != OP_input/'
bug 'the last block leaves its counter' runtime/prelude/host.h \
    '/^DEVICE int last_block/,/^}/ s/\*counter = 0/(void)0/'
