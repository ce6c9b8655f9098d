# shellcheck shell=sh
# Sourced by the tests here: a working folder and the checks of end_to_end, the
# double of NVIDIA's driver and libraries before installed ones, and an empty
# cache.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -d "$SINTER_DOUBLE" ] || exit 77
export LD_LIBRARY_PATH="$SINTER_DOUBLE" XDG_CACHE_HOME="$work/cache"
