#!/bin/sh
# shellcheck disable=SC2154 # here and work are of expect.sh
# A command that is signalled alone ends the programs that it runs, waits for
# them, ends by that signal, and leaves nothing of them.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

# A program that takes its time, also to end: it says that it has begun, and
# how many signals it was given.  It stands for trainers and for compilers.
cat >slow.c <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile sig_atomic_t signals;
static void caught(int number) {
    (void)number;
    signals++;
}
int main(void) {
    char name[4096];
    snprintf(name, sizeof name, "%s/%d", getenv("BEGUN"), (int)getpid());
    signal(SIGINT, caught);
    signal(SIGTERM, caught);
    signal(SIGHUP, caught);
    FILE *f = fopen(name, "w");
    if (f == NULL || fclose(f) != 0)
        return 1;
    for (int i = 0; i < 300 && signals == 0; i++)
        usleep(100000);
    usleep(300000);
    f = fopen(name, "w");
    fprintf(f, "%d\n", (int)signals);
    return fclose(f);
}
END
compiler=${CC:-cc}
expect 0 "$compiler" -D_GNU_SOURCE -O1 -o slow slow.c
# What builds such a trainer: the word behind -o is its name.
cat >builds <<'END'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
case $2 in
*.o) : >"$2" ;;
*) cp "$SLOW" "$2" && chmod +x "$2" ;;
esac
END
chmod +x builds
export SLOW="$work/slow" BEGUN="$work/begun" TMPDIR="$work/temporary"

# begin COUNT COMMAND...: in the background, until so many programs run.  What
# ran the tests, as nohup, may have had signals ignored.
begin() {
    count=$1
    shift
    rm -rf begun temporary
    mkdir begun temporary
    env --default-signal=INT,TERM,HUP "$@" >out 2>err &
    until [ "$(find begun -type f | wc -l)" -ge "$count" ]; do
        kill -0 $! 2>err.none || fail "nothing runs of $*: $(cat out err)"
        sleep 0.05
    done
}

# ends SIGNAL STATUS [OPTION...]: what has begun, with the programs before it.
ends() {
    signal=$1 status=$2
    shift 2
    env kill "$@" "-$signal" $!
    wait $!
    got=$?
    [ "$got" -eq "$status" ] || fail "status $got: $count $(cat out err)"
    for ran in begun/*; do
        [ ! -e "/proc/${ran#begun/}" ] || fail "a program goes on"
        [ "$(cat "$ran")" = 1 ] || fail "it was told $(cat "$ran") times"
    done
    # What is taken away when nobody uses it any more.
    for _ in $(seq 50); do
        left=$(find temporary -mindepth 1 && find . -name '.*.part')
        [ -z "$left" ] && return
        sleep 0.1
    done
    fail "it leaves $left"
}

micro=$here/micro.net
for command in bench compare "compare --ablate" bisect lrfind repeat \
    "repeat -o kept"; do
    # shellcheck disable=SC2086 # a command and its options
    begin 1 env CC="$work/builds" "$SINTER" $command "$micro"
    ends TERM 143
done
# train has become the trainer, which here ends well.
begin 1 env CC="$work/builds" XDG_CACHE_HOME="$work/cache" \
    "$SINTER" train "$micro"
ends TERM 0
for command in tune repeat; do
    begin 1 "$SINTER" $command slow
    ends HUP 129
done
begin 1 "$SINTER" repeat slow
ends TERM 143 -q 1 # in a queue

# Each piece of a trainer has a compiler, where there are processors.
pieces=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
[ "$pieces" -le 2 ] || pieces=2
begin "$pieces" env CC="$SLOW" "$SINTER" build "$models/resnet9.net" -o trainer
ends TERM 143
[ ! -e trainer ] || fail "build leaves a trainer"

# A terminal has told both; a second signal a while later would be taken to mean
# that a trainer is to end at once.
rm -rf begun
mkdir begun
python3 - "$SINTER" repeat slow <<'END'
import os, pty, signal, sys, time
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
while not os.listdir("begun"):
    time.sleep(0.05)
os.kill(child, signal.SIGSTOP)
os.write(terminal, b"\x03")
time.sleep(0.1)
os.kill(child, signal.SIGCONT)
_, status = os.waitpid(child, 0)
sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else 1)
END
[ $? -eq 130 ] || fail "Ctrl-C does not end repeat"
[ "$(cat begun/*)" = 1 ] || fail "Ctrl-C was told $(cat begun/*) times"

# What is ignored does not end it, and programs are seen to end where whoever
# has started it does not want to be told of such.
begin 1 sh -c "trap '' TERM; exec \"\$@\"" sh "$SINTER" repeat slow
kill $!
sleep 0.3
kill -0 $! || fail "a signal that is ignored ends it"
ends HUP 129
expect 0 timeout 60 python3 - "$SINTER" build "$micro" -o trainer <<'END'
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
END
exit 0
