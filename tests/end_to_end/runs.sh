#!/bin/sh
# Nothing of a run is lost by the next: each has a folder of its own, which says
# how it was made and how it went.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

unset NO_COLOR
export TERM=xterm
esc=$(printf '\033')

cp "$here/tiny.net" .
expect 0 "$SINTER" build tiny.net --set epochs=2 --set "loss=mean(cross_entropy(output, label))" -o tiny

# plain FILE: a terminal's text without escapes and progress bars.
plain() {
    tr '\r' '\n' <"$1" | sed "s/$esc\[[0-9;]*[a-zA-Z]//g" |
        grep -v -e '^$' -e '^epoch .*\[[=> ]*\]'
}

# Three runs have three folders, and the first keeps its bits.
expect 0 ./tiny --data synthetic:256 --quiet
find runs/Tiny/001 -type f -exec cksum {} + | sort >first
expect 0 ./tiny --data synthetic:256 --seed 1 --threads 1
expect 0 ./tiny --data synthetic:256 --seed 2 --init=runs/Tiny/001
expect_says "starting with runs/Tiny/001/step-00000008.safetensors"
[ "$(ls runs/Tiny)" = "001
002
003" ] || fail "the folders are $(ls runs/Tiny)"
find runs/Tiny/001 -type f -exec cksum {} + | sort >again
expect_equal first again
for file in model.net settings.json metrics.jsonl log.txt \
    step-00000008.safetensors; do
    [ -s runs/Tiny/001/$file ] || fail "a run leaves no $file"
done
expect_equal tiny.net runs/Tiny/001/model.net

# The settings are JSON, and complete.
python3 - runs/Tiny/002/settings.json <<'END' || fail "settings.json"
import json, re, sys
s = json.load(open(sys.argv[1]))
assert s["model"] == "Tiny" and s["file"] == "tiny.net", s
assert s["set"]["epochs"] == "2", s
assert s["options"] == ["--data", "synthetic:256", "--seed", "1",
                        "--threads", "1"], s
assert "resume_options" not in s and s["resumed"] == 0, s
assert s["seed"] == 1 and s["threads"] == 1 and s["device"] == "host", s
assert s["data"] == "synthetic:256" and s["training_samples"] == 256, s
assert s["steps"] == s["steps_done"] == 8 and s["epochs_done"] == 2, s
assert s["state"] == "finished" and s["on"] == "test", s
assert 0 < s["loss"] < 3 and 0 <= s["accuracy"] <= 1 and s["elapsed"] > 0, s
assert s["checkpoint"] == "step-00000008.safetensors", s
assert re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}$", s["started"]), s
END
python3 - runs/Tiny/002/metrics.jsonl <<'END' || fail "metrics.jsonl"
import json, sys
rows = [json.loads(row) for row in open(sys.argv[1])]
assert [r["split"] for r in rows] == ["train", "test"] * 2 + ["time"], rows
END

# A folder that holds a run is refused before anything is touched.
find runs/Tiny -type f -exec cksum {} + | sort >before
expect 3 ./tiny --data nowhere --out runs/Tiny/002
expect_says "runs/Tiny/002 already holds a run; --resume --out=runs/Tiny/002"
expect 3 ./tiny --data synthetic:256 --out runs/Tiny/002 \
    --resume=runs/Tiny/001/step-00000008.safetensors
expect_says "already holds a run"
find runs/Tiny -type f -exec cksum {} + | sort >after
expect_equal before after

# So is one that has a name of the user's that a run would write to.
for name in model.net metrics.jsonl log.txt; do
    mkdir "own-$name"
    echo mine >"own-$name/$name"
    expect 3 ./tiny --data synthetic:256 --quiet "--out=own-$name"
    expect_says "own-$name already holds $name, which a run would overwrite"
    [ "$(cat "own-$name"/*)" = mine ] || fail "$name of the user is lost"
    mv "own-$name/$name" "own-$name/other"
    expect 0 ./tiny --data synthetic:256 --quiet "--out=own-$name"
done
rm -r own-*

# Files that a model imports are recorded beside it, whatever their names, and
# the record compiles.
mkdir -p parts/a parts/std
for name in metrics.jsonl log.txt step-00000001.safetensors settings.json \
    a/b.net a_b.net a/model.net std/own.net; do
    letter=$(echo "$name" | tr -dc a-z_)
    echo "let of_$letter = 0 # $name" >"parts/$name"
    echo "import \"./$name\" { of_$letter }"
done >parts/main.net
cat tiny.net >>parts/main.net
expect 0 "$SINTER" build parts/main.net -o whole-main
expect 0 ./whole-main --data synthetic:64 --quiet --out recorded
expect_equal parts/main.net recorded/model.net
diff -r parts recorded/source >&2 || fail "the record has other files"
expect 0 "$SINTER" check recorded/source/main.net
grep -q '"split":"train"' recorded/metrics.jsonl || fail "an import for rows"
[ "$(cd recorded && echo *.safetensors)" = \
    "step-00000002.safetensors step-00000003.safetensors" ] ||
    fail "an import is a checkpoint"
expect 0 ./whole-main --data synthetic:64 --quiet --out recorded --resume
mkdir -p taken/source
echo mine >taken/source/main.net
expect 3 ./whole-main --data synthetic:64 --quiet --out taken
expect_says "taken already holds source, which a run would overwrite"
rm -r parts recorded taken

# A run that does not start leaves no folder, whatever stops it.
expect 3 ./tiny --data nowhere
expect 3 ./tiny --data synthetic:256 --init=nowhere
expect 2 ./tiny --data synthetic:256 --resident=yes
[ "$(ls runs/Tiny | wc -l)" -eq 3 ] || fail "a run that never was has a folder"

# --resume finds the newest run that has a checkpoint, and adds to its files.
mkdir runs/Tiny/005 runs/Tiny/notes
expect 0 ./tiny --data synthetic:256 --epochs 3 --steps 6
expect_says "^weights in runs/Tiny/006/step-00000006.safetensors$"
grep -q '"state": "interrupted"' runs/Tiny/006/settings.json ||
    fail "a run in two parts is not interrupted"
cp runs/Tiny/006/log.txt part
mkdir runs/Tiny/007
expect 0 ./tiny --data synthetic:256 --resume
expect_says "^resuming from runs/Tiny/006/step-00000006.safetensors"
head -c "$(wc -c <part)" runs/Tiny/006/log.txt | cmp - part ||
    fail "a run that resumes does not add to its log"
[ "$(grep -c '"split":"train"' runs/Tiny/006/metrics.jsonl)" -eq 3 ] ||
    fail "the metrics of a run that resumes are not those of a whole one"
python3 - runs/Tiny/006/settings.json <<'END' || fail "settings of a resumed run"
import json, sys
s = json.load(open(sys.argv[1]))
assert s["options"][-1] == "6" and s["resume_options"][-1] == "--resume", s
assert s["resumed"] == 1 and s["state"] == "finished" and s["steps"] == 12, s
END

# Another trainer of the model resumes: the record of the start stays, of any
# length, and the time goes on, from the rows where a run was killed.
kept() {
    grep -e '"file"' -e '"set"' -e '"options"' -e '"started"' kept/settings.json
}
cp tiny.net other.net
expect 0 "$SINTER" build other.net --set "epochs = 2" --set width=8 \
    --set "loss=mean(cross_entropy(output, label))" -o other.trainer
expect 0 ./tiny --data synthetic:256 --quiet --steps 4 --out kept \
    --times="$(printf "/dev/%03500d" 0 | tr 0 /)null" \
    --metrics="$(printf "/dev/%03500d" 0 | tr 0 /)null"
kept >start
sed -i 's/"elapsed":[0-9.]*/"elapsed":1000/' kept/metrics.jsonl
expect 0 ./other.trainer --data synthetic:256 --quiet --out kept --resume
kept >later
expect_equal start later
grep -q '"resume_options": .*"--resume"' kept/settings.json ||
    fail "no options of the run that resumed"
python3 - <<'END' || fail "the time of a resumed run"
import json
rows = [json.loads(row) for row in open("kept/metrics.jsonl")]
elapsed = [r["elapsed"] for r in rows if "elapsed" in r]
assert elapsed == sorted(elapsed) and elapsed[-1] > 1000, elapsed
settings = json.load(open("kept/settings.json"))
assert settings["elapsed"] > 1000, settings
assert len(settings["options"]) == 9, settings["options"]
END
expect 0 ./tiny --data synthetic:256 --eval-only
expect_says "^evaluating runs/Tiny/006/step-00000012.safetensors"

# A newer run that was killed before its first checkpoint is named.
expect 0 ./tiny --data synthetic:256 --quiet --eval-only
grep -q warning err && fail "an empty folder is taken for a run"
mkdir runs/Tiny/008
sed 's/"state": "finished"/"state": "running"/' runs/Tiny/006/settings.json \
    >runs/Tiny/008/settings.json
expect 0 ./tiny --data synthetic:256 --quiet --resume
expect_says "^warning: runs/Tiny/008 is newer but has no checkpoint; using runs/Tiny/006$"
rm -r runs/Tiny/008
rmdir runs/Tiny/00[57] runs/Tiny/notes

# A file resumes in a new folder; a folder, in itself.
expect 0 ./tiny --data synthetic:256 --epochs 3 --threads 2 --out whole
expect 0 ./tiny --data synthetic:256 --epochs 3 --threads 2 --steps 5 --out half
expect 0 ./tiny --data synthetic:256 --threads 2 \
    --resume=half/step-00000005.safetensors
expect_says "^weights in runs/Tiny/007/step-00000012.safetensors$"
expect_equal whole/step-00000012.safetensors \
    runs/Tiny/007/step-00000012.safetensors
expect 0 ./tiny --data synthetic:256 --threads 2 --resume=half
expect_equal whole/step-00000012.safetensors half/step-00000012.safetensors

# Trainers that start at once get different numbers: each waits before it makes
# its folder, so that all have chosen the same.
cat >slow.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

int mkdir(const char *path, mode_t mode) {
    int (*make)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
    sleep(1);
    return make(path, mode);
}
END
expect 0 "${CC:-cc}" -shared -fPIC -o slow.so slow.c -ldl
preload=$PWD/slow.so
[ -z "${SINTER_SANITIZED:-}" ] || preload= # its library must be the first
for i in 1 2 3 4 5 6; do
    LD_PRELOAD=$preload ./tiny --data synthetic:64 --epochs 0.1 --threads 1 \
        --quiet >said.$i 2>&1 &
done
wait
[ "$(cat said.* | grep -c '^weights in runs/Tiny/0')" -eq 6 ] ||
    fail "not each of six trainers has weights: $(cat said.*)"
[ "$(cat said.* | grep '^weights' | sort -u | wc -l)" -eq 6 ] ||
    fail "two trainers share a folder: $(cat said.*)"

# Without a checkpoint clause there is a checkpoint every five minutes, here of a
# clock that runs a thousand times as fast: a run that is killed goes on from it.
cat >fast.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *t) {
    static time_t began;
    int (*get)(clockid_t, struct timespec *) =
        dlsym(RTLD_NEXT, "clock_gettime");
    int status = get(clock, t);
    if (clock != CLOCK_MONOTONIC)
        return status;
    if (began == 0)
        began = t->tv_sec;
    double seconds = 1e3 * ((double)(t->tv_sec - began) + 1e-9 * (double)t->tv_nsec);
    t->tv_sec = began + (time_t)seconds;
    t->tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds));
    return status;
}
END
if [ -n "$preload" ]; then
    expect 0 "${CC:-cc}" -shared -fPIC -o fast.so fast.c -ldl
    sed '/checkpoint/d' "$here/tiny.net" >plain.net
    expect 0 "$SINTER" build plain.net --set epochs=1000 -o plain
    LD_PRELOAD=$PWD/fast.so ./plain --data synthetic:256 --threads 1 --quiet \
        --out killed >said 2>&1 &
    pid=$!
    for _ in $(seq 200); do
        [ -n "$(newest killed 2>/dev/null)" ] && break
        sleep 0.1
    done
    kill -9 $pid
    wait $pid
    [ -n "$(newest killed)" ] || fail "no checkpoint after five minutes"
    grep -q '"state": "running"' killed/settings.json || fail "it had ended"
    expect 0 ./plain --data synthetic:256 --threads 1 --resume=killed --steps 1
fi
# If two start at once with one new --out, the loser leaves the winner's folder
# alone: whichever made it, one run has its weights there.
for i in 1 2; do
    LD_PRELOAD=$preload ./tiny --data synthetic:64 --epochs 0.1 --threads 1 \
        --quiet --out shared >shared.$i 2>&1 &
done
wait
[ "$(cat shared.? | grep -c '^weights in shared/step-')" -eq 1 ] ||
    fail "not one of two trainers has weights: $(cat shared.?)"
grep -q 'is gone' shared.? && fail "a loser removes the winner's folder"
[ -s shared/step-00000001.safetensors ] || fail "the winner's weights are lost"

# The log has all printed lines; a warning and an error, too.
./tiny --data synthetic:256 --out logged >printed 2>&1 || fail "no run"
expect_equal printed logged/log.txt
grep -q '^epoch .* elapsed [0-9:]*  left [0-9:]*$' printed ||
    fail "an epoch has no elapsed time"
grep -q '^time: .* %' printed || fail "no line of the time"
grep -q 'seconds   share' printed && fail "the table is there unasked"
grep -q "$esc" printed && fail "a file has colours"
tail -n 1 printed | grep -q '^weights in logged/step-00000008.safetensors$' ||
    fail "the last line does not name the weights"

# A run that resumes and stops before an evaluation keeps the one before.
expect 0 ./tiny --data synthetic:256 --steps 5 --out seen/001
expect 0 ./tiny --data synthetic:256 --resume=seen/001 --steps 1
expect 0 "$SINTER" runs seen
expect_says '^001 .* [0-9.]* %  *[0-9.]* .* interrupted'

# --time prints the table, --quiet nothing but the end.
expect 0 ./tiny --data synthetic:256 --out timed --time
expect_says '^time  *seconds   share$'
expect_says '^library calls '
grep -q '^time: ' out && fail "the line is there beside the table"
expect 0 ./tiny --data synthetic:256 --out timed_early --time --steps=2 --quiet
expect_says '^time  *seconds   share$'
expect 0 ./tiny --data synthetic:256 --out quiet --quiet
[ -s err ] && fail "--quiet prints $(cat err)"
[ "$(sed 's/ .*//' out | tr '\n' ' ')" = "test weights " ] ||
    fail "--quiet prints $(cat out)"
expect_equal out quiet/log.txt

# On a terminal there are a bar and colours, unless they are not wanted.
if command -v script >/dev/null; then
    cat >on_terminal <<'END'
./tiny --data synthetic:30000 --epochs 2 --threads 1 --out "$1"
END
    script -qec 'sh on_terminal shown' /dev/null </dev/null >screen
    grep -q "$esc\[36mepoch [12]/2 \[[=> ]*\]" screen || fail "no bar in colour"
    plain screen >lines
    expect_equal lines shown/log.txt
    grep -q "$esc" shown/log.txt && fail "the log has escapes"
    NO_COLOR=1 script -qec 'sh on_terminal grey' /dev/null </dev/null >screen
    grep -q "$esc\[[0-9;]*m" screen && fail "NO_COLOR leaves colours"
    grep -q "epoch [12]/2 \[[=> ]*\]" screen || fail "NO_COLOR takes the bar"
    TERM=dumb script -qec 'sh on_terminal dumb' /dev/null </dev/null >screen
    grep -q "$esc" screen && fail "a dumb terminal gets escapes"
    grep -q "\[[=> ]*\]" screen && fail "a dumb terminal gets a bar"
fi

# A signal ends with the weights, and the list says so.
./tiny --data synthetic:60000 --epochs 50 >stopped 2>&1 &
child=$!
while ! grep -q "^epoch" stopped 2>/dev/null; do
    kill -0 $child || fail "it has ended: $(cat stopped)"
    sleep 0.1
done
expect 0 "$SINTER" runs --json
grep -q '"state": "running", "epochs_done": [1-9]' out ||
    fail "a run that goes on is not running: $(cat out)"
kill -TERM $child
wait $child
tail -n 1 stopped | grep -q '^weights in runs/Tiny/.*\.safetensors$' ||
    fail "the last line after a signal is $(tail -n 1 stopped)"
[ -s "$(tail -n 1 stopped | sed 's/^weights in //')" ] ||
    fail "there are no weights where the last line says"

# sinter runs lists them.
expect 0 "$SINTER" runs
expect_says '^Tiny/001  20..-..-.. ..:.. .* 2/2 .* %  .*  finished  .*epochs=2 .*--quiet$'
expect_says ' interrupted  .*epochs 50'
expect 0 "$SINTER" runs runs/Tiny
expect_says '^001 '
expect 0 "$SINTER" runs Tiny/001
expect_says '^runs/Tiny/001  20'
expect 0 "$SINTER" plot Tiny/001 -o plot.svg
expect 0 "$SINTER" runs --json
python3 - <<'END' || fail "runs --json"
import json
runs = json.load(open("out"))["runs"]
assert len(runs) >= 10, len(runs)
first = runs[0]
assert first["run"] == "runs/Tiny/001" and first["state"] == "finished", first
assert first["bytes"] > 10000 and first["settings"]["model"] == "Tiny", first
END
expect 0 "$SINTER" runs Tiny/001 runs/Tiny/006
expect_says '^A  runs/Tiny/001: finished, 2/2 epochs, accuracy .* %, loss '
expect_says '^epochs  *2 | 3$'
expect_says '^      3              -        -         -  '
grep -q '^model' out && fail "settings that are equal are listed"
expect 3 "$SINTER" runs none Tiny/001
expect_says "none holds no run"
expect 74 "$SINTER" runs nowhere
mkdir empty
expect 3 "$SINTER" runs empty
expect 2 "$SINTER" runs a b c

# A killed run is not running, and no text of a file or its name controls the
# terminal.
sed 's/"state": "finished"/"state": "running"/
    s/synthetic:256/synth\\u001b[31metic/' runs/Tiny/001/settings.json >edited
mv edited runs/Tiny/001/settings.json
mv runs/Tiny/001 "runs/Tiny/0$esc[31m"
expect 0 "$SINTER" runs
expect_says 'Tiny/0.* interrupted  .*synth.u001b.31metic'
grep -q "$esc" out && fail "the text of a file reaches the terminal"

# A pipe in the place of the metrics is not waited for.
pipe="runs/Tiny/0$esc[31m"
mv "$pipe/metrics.jsonl" metrics.jsonl
mkfifo "$pipe/metrics.jsonl"
expect 0 timeout 20 "$SINTER" runs
expect 0 timeout 20 "$SINTER" runs "$pipe" Tiny/002
rm "$pipe/metrics.jsonl"
mv metrics.jsonl "$pipe/metrics.jsonl"
expect 0 "$SINTER" runs "$pipe" Tiny/002
expect_says '^ *1  .* %  .* %$'

# Nor does a name forge a line; a time that is none is not shown.
forged=$(printf 'runs/Tiny/0\nforged')
mv "runs/Tiny/0$esc[31m" "$forged"
sed 's/"elapsed": [0-9.]*/"elapsed": 1e300/' "$forged/settings.json" >edited
mv edited "$forged/settings.json"
expect 0 "$SINTER" runs
expect_says '^Tiny/0.x0aforged .* -  .* interrupted '
expect 0 "$SINTER" runs "$forged" Tiny/002
grep -q '^forged' out && fail "a name forges a line: $(cat out)"

# A file system without locks does not say that a run goes on.
cat >lockless.c <<'END'
#include <errno.h>

int flock(int file, int operation) {
    (void)file, (void)operation;
    errno = ENOLCK;
    return -1;
}
END
if [ -z "${SINTER_SANITIZED:-}" ]; then
    expect 0 "${CC:-cc}" -shared -fPIC -o lockless.so lockless.c
    LD_PRELOAD=$PWD/lockless.so expect 0 "$SINTER" runs
    expect_says '^Tiny/0.x0aforged .* interrupted '
fi
exit 0
