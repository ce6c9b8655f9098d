#!/bin/sh
# docs/embedding.md works as written, has the flags of tools/compiler.c and no
# others, and a trainer compiled with them, in pieces too, leaves the weights of
# one that sinter links.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -z "${CFLAGS:-}" ] || exit 77
[ "$(uname -m)" = x86_64 ] || exit 77
page=$SINTER_SOURCE/docs/embedding.md
python3 "$SINTER_SOURCE/tests/docs/walk.py" "$page" || exit $?

flags() {
    sed -n "/^static const char \*const $1/,/};/p" \
        "$SINTER_SOURCE/tools/compiler.c" | grep -o '"-[^"]*"' | tr -d '"'
}
compile=$(flags compile_flags)
link=$(flags link_flags)
[ "$(echo "$compile" | wc -l)" -gt 5 ] || fail "flags of compiler.c: $compile"
sed -n '/^cc /,/^build/p' "$page" >commands
for flag in $compile $link; do
    grep -q -e "[ ]$flag\\( \\|$\\)" commands || fail "embedding.md lacks $flag"
done
for flag in $(sed 's/^cc //' commands | grep -o ' -[fmW][^ ]*'); do
    case " $(echo $compile $link) -march=native -Wa,-Ibuild/mlp " in
    *" $flag "*) ;;
    *) fail "embedding.md has $flag" ;;
    esac
done

# An installation has all that a trainer needs, and the licence.
expect 0 cmake --install "${SINTER%/bin/sinter}" --prefix "$work/installed"
[ -s installed/share/doc/sinter/LICENSE ] || fail "no licence is installed"
expect 0 installed/bin/sinter build "$models/mlp.net" -o installed/mlp
expect 0 installed/mlp --version

expect 0 "$SINTER" build "$models/mlp.net" --emit=c -o emitted
expect 0 "$SINTER" build "$models/mlp.net" -o linked
for unit in 0 1; do
    # shellcheck disable=SC2086 # flags
    expect 0 "$CC" $compile -march=native -I"$SINTER_INCLUDE" -Wa,-Iemitted -DSINTER_UNITS=2 \
        -DSINTER_UNIT=$unit -c emitted/mlp.c -o unit$unit.o
done
# shellcheck disable=SC2086
expect 0 "$CC" unit0.o unit1.o "$SINTER_LIB/libsinter_rt.a" $link -o pieces
for trainer in linked pieces; do
    expect 0 ./$trainer --device=host --threads=1 --data synthetic --steps=20 \
        --out run-$trainer
done
expect_equal "$(newest run-linked)" "$(newest run-pieces)"
exit 0
