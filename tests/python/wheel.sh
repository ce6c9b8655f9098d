#!/bin/sh
# pip install . gives a command and a module that compile and run by
# themselves.  Without a network it is skipped.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -z "${CFLAGS:-}" ] || exit 77
"$SINTER_PYTHON" -c 'import numpy' 2>/dev/null || exit 77
git -C "$SINTER_SOURCE" ls-files --cached --others --exclude-standard \
    -- . ':!tests/golden' >files || exit 77
mkdir tree
(cd "$SINTER_SOURCE" && tar c -T "$work/files") | tar x -C tree
"$SINTER_PYTHON" -m venv --without-pip fresh || exit 77
# The objects are those of the build that is tested, as deep below the sources.
CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$work/tree" \
    CCACHE_NOHASHDIR=1 "$SINTER_PYTHON" -m pip --python fresh/bin/python install \
    --disable-pip-version-check --config-settings=build-dir=build/wheel ./tree >log 2>&1 || {
    grep -q -e 'No matching distribution' -e 'connection' log && exit 77
    cat log >&2
    fail "pip install ."
}
unset SINTER SINTER_MARCH
PATH=$work/fresh/bin:/usr/bin:/bin
expect 0 sinter version
cp "$models/mlp.net" .
cat >alone.py <<'END'
import numpy
import sinter
model = sinter.build("mlp.net", set={"batch": 20})
assert "site-packages" in sinter.executable(), sinter.executable()
print(model.predict(numpy.zeros((30, 28, 28, 1), numpy.uint8)).shape)
END
expect 0 python3 alone.py
expect_says '(30, 10)'
