#!/bin/sh
# Ranks that OpenMPI and MPICH start and connect: the same weights as one
# process, to the bit, and the end of one that is missing.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/close.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# 150 samples in updates of 64: the last one fills two shards of eight and a
# half of another.
idx_data data 150
recipe='--set shards=8 --set lr=0.05 --set epochs=2 --set batch=64'
# shellcheck disable=SC2086
expect 0 "$SINTER" build "$here/tiny.net" $recipe -o tiny
expect 0 "$SINTER" build "$here/tiny.net" --set shards=8 --set epochs=100000 \
    --set batch=64 -o long
expect 0 ./tiny --data data --out one --quiet
expect 0 ./tiny --predict data --weights=one --out one.npy
# Its terms, 1.2 million, take more than a piece of a sum.
cat >wide.net <<'NET'
model Wide(image: u8[N, 12, 12, 1]) -> f32[N, 10] {
  image |> normalize(mean=[128], std=[64]) |> flatten |> linear(8000) |> relu
    |> linear(10)
}

train Wide {
  data      = idx("data")
  batch     = 64
  shards    = 4
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.01)
}
NET
expect 0 "$SINTER" build wide.net -o wide
expect 0 ./wide --data data --out wide1 --steps=2 --quiet
# Three parts of the optimizer's states.
# shellcheck disable=SC2086
expect 0 "$SINTER" build "$here/tiny.net" $recipe --set optimizer_shards=3 \
    -o parts
expect 0 ./parts --data data --out parts1 --quiet

# start LAUNCHER COUNT PROGRAM...: ranks that $collectives connect.
collectives=--collectives=mpi
start() {
    count=$2
    case $1 in
    openmpi) launcher='mpirun.openmpi --oversubscribe --bind-to none' ;;
    mpich) launcher=mpiexec.mpich ;;
    esac
    shift 2
    # shellcheck disable=SC2086
    $launcher -np "$count" "$@" --data data --quiet $collectives
}

found=
for library in openmpi mpich; do
    command -v mpirun.$library >/dev/null || continue
    found=$found$library
    for count in 2 4; do
        expect 0 start $library $count ./tiny --out $library$count
        expect_equal "$(newest one)" "$(newest $library$count)"
    done
    expect 0 start $library 4 ./tiny --out ${library}fast --reduce=fast
    expect_close "$(newest one)" "$(newest ${library}fast)"
    expect 0 start $library 4 ./wide --out wide$library --steps=2
    expect_equal "$(newest wide1)" "$(newest wide$library)"
    collectives=--collectives=shared
    expect 0 start $library 4 ./wide --out wide$library.shared --steps=2
    expect_equal "$(newest wide1)" "$(newest wide$library.shared)"
    collectives=--collectives=mpi
    expect 0 start $library 4 ./parts --out parts$library --steps=2
    expect 0 start $library 2 ./parts --out parts$library --resume
    expect_equal "$(newest parts1)" "$(newest parts$library)"
    expect 0 start $library 4 ./tiny --out $library --steps=2
    expect 0 start $library 2 ./tiny --out $library --resume
    expect_equal "$(newest one)" "$(newest $library)"
    # shellcheck disable=SC2086
    expect 0 $launcher -np 3 ./tiny $collectives --weights=one \
        --predict data --out $library.npy
    expect_equal one.npy $library.npy
done
[ -n "$found" ] || exit 77

# A launcher whose MPI is another one, and one that has none.
for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=$$ \
        ./tiny --data data --out torch --collectives=mpi >said.$rank 2>&1 &
done
wait
grep -q 'MPI .* does not know those that torchrun starts' said.0 ||
    fail "$(cat said.0)"
for rank in 0 1; do
    SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1 \
        SLURM_JOB_ID=$$ PMIX_OTHER= ./tiny --data data --out slurm \
        --collectives=mpi >said.$rank 2>&1 &
done
wait
grep -q 'srun starts rank 1 of 2, which is rank 0 of 1 in MPI' said.1 ||
    fail "$(cat said.1)"

# mpirun ends the others when a rank is killed, which they explain before.
case $found in openmpi*) ;; *) exit 0 ;; esac
cat >numbered <<'END'
#!/bin/sh
echo $$ >"process.$OMPI_COMM_WORLD_RANK"
exec "$@"
END
chmod +x numbered
start openmpi 4 ./numbered ./long --out killed >out 2>err &
tries=0
while [ -z "$(newest killed 2>/dev/null)" ] && [ $tries -lt 1000 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
[ -n "$(newest killed)" ] || fail 'no checkpoint of four ranks'
kill -KILL "$(cat process.3)"
wait $!
[ $? -eq 137 ] || fail "mpirun does not end with the rank's status"
expect_says 'rank 3 ended after step [0-9]*, so rank 0 ends after step'
expect 0 start openmpi 2 ./long --out killed --resume --steps=1
