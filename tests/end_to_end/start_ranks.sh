# shellcheck shell=sh
# Sourced after expect.sh by tests of several ranks.
# ranks COUNT OUT PROGRAM...: starts them as torchrun does; the exit statuses are
# in statuses, what they say in said.N.
ranks() {
    count=$1 folder=$2
    shift 2
    job=$((job + 1))
    list=
    rank=0
    while [ $rank -lt "$count" ]; do
        RANK=$rank WORLD_SIZE=$count LOCAL_WORLD_SIZE=$count \
            MASTER_ADDR=localhost MASTER_PORT=$((1000 + job)) \
            TORCHELASTIC_RUN_ID=$$ "$@" --out "$folder" --quiet \
            >said.$rank 2>&1 &
        list="$list $!"
        rank=$((rank + 1))
    done
    [ -n "${background-}" ] || join
}

join() {
    statuses=
    for process in $list; do
        wait "$process"
        statuses="$statuses $?"
    done
}

# expect_statuses STATUS...
expect_statuses() {
    [ "$statuses" = " $*" ] && return
    cat said.* >&2
    fail "exit statuses$statuses, not $*"
}

says() {
    grep -q -e "$1" said.* && return
    cat said.* >&2
    fail "no rank says '$1'"
}
job=0
