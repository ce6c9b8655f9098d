#!/bin/sh
# A trainer links libc, libm, the host library and its dependencies; no library
# of CUDA, so that it starts on any machine.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -z "${CFLAGS:-}" ] || exit 77
expect 0 "$SINTER" build "$here/tiny.net" -o tiny
expect 0 ldd tiny
grep -q libdnnl out || fail "no host library"
if grep -i -e cuda -e nvrtc -e cudnn -e cublas -e 'not found' out; then
    fail "that is linked"
fi
# Direct dependencies, by name.
readelf -d tiny | sed -n 's/.*(NEEDED).*\[\(lib[a-z]*\).*/\1/p' | sort >needed
while read -r library; do
    case $library in
    libc | libm | libdnnl | libgomp | libpthread | libdl) ;;
    *) fail "$library is linked" ;;
    esac
done <needed

# However many flags there are.
many=$(seq 200 | sed 's/^/-DUNUSED_/')
expect 0 env CFLAGS="$(echo "$many" | tr '\n' ' ')" \
    "$SINTER" build "$here/tiny.net" -o tiny
