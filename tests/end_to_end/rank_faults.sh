#!/bin/sh
# One of four ranks is killed at random instants, in shared memory and under
# OpenMPI.  With RANK_FAULTS=SECONDS up to 200 of them, which also stop ranks or
# cut them off, from a seed that the day gives.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

mpi=mpi.kill
command -v mpirun.openmpi >/dev/null || mpi=
# shellcheck disable=SC2086
if [ -n "${RANK_FAULTS-}" ]; then
    set -- 203 "$RANK_FAULTS" "$(date +%Y%j)"
else
    set -- 4 60 1 shared.kill $mpi
fi
python3 "$here/rank_faults.py" "$work/faults" "$@" || fail 'see above'
