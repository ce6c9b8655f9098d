# shellcheck shell=sh
# Sourced after expect.sh by tests that say nothing of the kernels' speed and of
# threads: their trainers are compiled by tcc, in a hundredth of the time, and
# have one thread (tests/random/tcc/prepare.h).
export LINKER="${CC:-cc}" CC="$SINTER_SOURCE/tests/random/tcc/cc"
