#!/bin/sh
# A portable trainer has kernels for each kind of vectors and the weights of one
# for this processor; --march, SINTER_MARCH and CFLAGS choose others.
OPTIMISATION=
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
[ -z "${CFLAGS:-}" ] || exit 77
[ "$(uname -m)" = x86_64 ] || exit 77

# built NAME WORD...: builds a trainer of that name by a command, and trains.
built() {
    name=$1
    shift
    expect 0 "$@" -o "$name"
    expect 0 "./$name" --data=synthetic:256 --epochs=1 --out="$name.run" --quiet
}
unset SINTER_MARCH
built portable "$SINTER" build "$models/mlp.net"
built native "$SINTER" build "$models/mlp.net" --march=native
expect_equal "$(newest portable.run)" "$(newest native.run)"
built v3 "$SINTER" build "$models/mlp.net" --march=x86-64-v3
built chosen env SINTER_MARCH=native "$SINTER" build "$models/mlp.net"
expect_equal native chosen
built given env CFLAGS=-march=x86-64-v3 "$SINTER" build "$models/mlp.net"

versions() {
    nm "$1" | grep -c 'arch_x86_64_v[34]$'
}
[ "$(versions given)" -eq 0 ] || fail "CFLAGS do not count"
[ "$(versions native)" -eq 0 ] || fail "a native trainer has versions"
[ "$(versions v3)" -eq 0 ] || fail "a trainer of one processor has versions"
case $(cc --version) in
*clang*) exit 0 ;;
esac
[ "$(versions portable)" -ge 20 ] || fail "a portable trainer has no versions"
mkdir temporary
expect 2 env TMPDIR="$work/temporary" \
    "$SINTER" build "$models/mlp.net" --march=unknown -o unknown
expect_says "--march=unknown: no processor that .* knows; give portable"
[ "$(wc -l <err)" = 1 ] || fail "$(cat err)"
rmdir temporary || fail "$(ls temporary)"

# On older processors, and one that lacks the vectors of this one.
command -v qemu-x86_64 >/dev/null || exit 0
expect 0 "$SINTER" build "$here/micro.net" -o small
for processor in core2duo Haswell; do
    expect 0 qemu-x86_64 -cpu $processor ./small --data=synthetic:64 \
        --steps=2 --threads=1 --out=$processor --quiet
done
