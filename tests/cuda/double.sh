# shellcheck shell=sh
# Sourced by the tests here: a folder to work in and what insists, as end_to_end
# has them, and in front of whatever is installed the double of NVIDIA's driver
# and libraries, with a cache that holds nothing yet.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -d "$SINTER_DOUBLE" ] || exit 77
export LD_LIBRARY_PATH="$SINTER_DOUBLE" XDG_CACHE_HOME="$work/cache"
