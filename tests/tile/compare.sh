#!/bin/sh
# sinter compare with tile kernels that run on the host: they agree with library
# calls, and a fault in one of them has its place in the model.
set -u
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

real="${CXX-c++}"
command -v "$real" >/dev/null || exit 77
export CFLAGS="$OPTIMISATION" CXXFLAGS="$OPTIMISATION"
model="$SINTER_SOURCE/tests/tile/compare.net"
compare() {
    want=$1
    shift
    expect "$want" "$SINTER" compare "$@" --steps=2 -a "--tile=all" \
        -b "--act=recipe"
}

compare 0 "$model"
expect_says ", 0 wrong; 0 only in a, 3 only in b"

# The relu of the first prologue that has one passes numbers from 1 on.
cat >faulty <<'END'
#!/bin/sh
for file; do :; done
sed -i '0,/where(\(v[0-9]*\) < 0, 0, v[0-9]*)/s//where(\1 < 1, 0, \1)/' "$file"
exec $REAL "$@"
END
chmod +x faulty
REAL="$real" CXX="$PWD/faulty" compare 7 "$model"
expect_says "^first wrong tensor: .*conv of second.conv_2, .*compare.net:3"
[ "$(grep -c ^WRONG out)" -eq 1 ] || fail "its readers are wrong, too"

# Without a C++ compiler, or activations of 16 bits.
CXX=no-such-compiler compare 4 "$model"
expect_says "tile kernels on the host need a C++ compiler"
expect 0 "$SINTER" build "$model" --set "precision=f32" --tile=all --emit=c \
    -o emitted
expect_says "the host runs no tile kernels: activations have 32 bits"
[ -e emitted/compare.tile.cc ] && fail "it has tile kernels"
expect 74 "$SINTER" build "$model" --tile=all --device=h200 -o nowhere/compare
expect_says "--tile without --target is for the host"
expect 0 "$SINTER" show tile "$model" --set "precision=f32"
expect_says "^// no tile kernels: activations have 32 bits"
compare 2 "$model" --set "precision=f32"
expect_says "the host runs no tile kernels: activations have 32 bits"
exit 0
