# shellcheck shell=sh
# Sourced after expect.sh: machine1, machine2 and so on, at 10.77.0.1 and so on,
# within this one.  Each has a network, process numbers, shared memory and
# temporary files of its own, and itself at 127.0.1.1, as Debian has; their
# network delays packets.  Needs root, ip of iproute2, unshare and /dev/net/tun.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# machines_open MILLISECONDS COUNT
machines_open() {
    machines=
    prefix=sinter$$
    mkfifo control delayed
    trap 'machines_close; rm -rf "$work"' EXIT
    for i in $(seq "$2"); do
        ip netns add "$prefix-$i" 2>why || skip
        machines="$machines $prefix-$i"
    done
    for i in $(seq "$2"); do
        printf '127.0.0.1 localhost\n127.0.1.1 machine%d\n' "$i" >"hosts$i"
        for j in $(seq "$2"); do
            [ "$j" -eq "$i" ] || echo "10.77.0.$j machine$j" >>"hosts$i"
        done
    done
    # shellcheck disable=SC2086
    python3 "$here/delay.py" "$1" $machines <control >delayed 2>why &
    exec 8>control 9<delayed
    read -r first <&9 && [ "$first" = ready ] || skip
    cat >agent <<END
#!/bin/sh
prefix=$prefix work=$work
. "$here/namespaces.sh"
machine=\$1
shift
on "\$machine" sh -c "\$*"
END
    chmod +x agent
}

skip() {
    echo "skipped: no network namespaces here: $(tail -n 1 why)" >&2
    exit 77
}

# Ends the network; the number of its packets is in packets.
machines_close() {
    [ -n "$machines" ] || return
    exec 8>&-
    read -r packets <&9
    exec 9<&-
    for name in $machines; do
        ip netns del "$name"
    done
    machines=
}

# on ADDRESS COMMAND...: runs it on that machine.
on() {
    machine=${1##*.}
    shift
    mkdir -p "$work/tmp$machine"
    TMPDIR=$work/tmp$machine ip netns exec "$prefix-$machine" unshare --uts \
        --pid --mount-proc --fork --kill-child \
        sh -c 'hostname "machine$0" && mount -t tmpfs shm /dev/shm &&
            mount --bind "$1" /etc/hosts && shift && exec "$@"' \
        "$machine" "$work/hosts$machine" "$@"
}

# mpirun_on LIST OPTION...: mpirun, on 10.77.0.1, for the machines of LIST.
mpirun_on() {
    list=$1
    shift
    on 10.77.0.1 mpirun.openmpi --host "$list" --oversubscribe --bind-to none \
        --mca plm_rsh_agent "$work/agent" \
        --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca btl_tcp_if_include 10.77.0.0/24 \
        -x MASTER_ADDR=machine1 -x MASTER_PORT=20001 "$@"
}
