#!/bin/sh
# cpack makes a Debian package with all that a trainer needs; an installation
# works below any folder, by DESTDIR too.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -z "${CFLAGS:-}" ] || exit 77
command -v dpkg-deb >/dev/null || exit 77
build=${SINTER%/bin/sinter}
expect 0 cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/made"
package=$(find made -maxdepth 1 -name 'sinter_*.deb')
[ -s "$package" ] || fail "no package"
expect 0 dpkg-deb --info "$package"
for line in 'Package: sinter' "Version: $("$SINTER" version | cut -d ' ' -f 2)" \
    'Depends: gcc | c-compiler' 'Depends: .*libdnnl-dev'; do
    expect_says "$line"
done
expect 0 dpkg-deb -x "$package" root

# works PREFIX: its sinter, found by PATH alone, makes a trainer and a library.
works() {
    (
        unset SINTER SINTER_LIB SINTER_INCLUDE SINTER_SOURCE
        PATH=$1/bin:/usr/bin:/bin
        cp "$models/mlp.net" .
        expect 0 sinter train mlp.net --data=synthetic:256 --epochs=1 --quiet
        expect 0 sinter build mlp.net --library --inference -o libmlp
        [ -s "$1/share/man/man1/sinter-train.1" ] || fail "$1: manual pages"
        for file in bash-completion/completions/sinter \
            zsh/site-functions/_sinter fish/vendor_completions.d/sinter.fish; do
            [ -s "$1/share/$file" ] || fail "$1: $file"
        done
        [ -s "$1/lib/cmake/sinter/sinter-config.cmake" ] || fail "$1: CMake"
        rm -rf runs
    ) || exit 1
}
export XDG_CACHE_HOME="$work/cache"
works "$work/root/usr"
expect 0 env DESTDIR="$work/staged" cmake --install "$build" --prefix /opt/s
mv staged/opt/s elsewhere
works "$work/elsewhere"
