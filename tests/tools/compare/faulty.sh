# shellcheck shell=sh
# Sourced by tests that plant a mistake: a C compiler that first changes the
# kernels of a trainer as the sed command in $FAULT says, where they are fewer
# than 40, as those of fused trainers are.
cat >faulty <<'END'
#!/bin/sh
for text in *.cu; do
    if [ -n "${FAULT:-}" ] && [ "$(grep -c '^KERNEL(' "$text")" -lt 40 ]; then
        (
            flock 9
            [ -e "$TEXTS/$(basename "$PWD")" ] && exit
            sed "$FAULT" "$text" >faulty.text
            mv faulty.text "$text"
            : >"$TEXTS/$(basename "$PWD")"
        ) 9>"$TEXTS/lock"
    fi
done
exec $COMPILER "$@"
END
chmod +x faulty
mkdir texts
export COMPILER="${CC:-cc}" TEXTS="$PWD/texts" CC="$PWD/faulty"
