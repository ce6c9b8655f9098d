#!/bin/sh
# Collects on a Debian machine the inputs that bench/gpu.sh needs on one without
# packages and network: packages, some 9 MiB, which gpu.sh unpacks; the commit
# with checksums of its files; and other files.
#
#   bench/carry.sh DIR [FILE...]      into DIR, usually build/carry
set -eu
[ $# -ge 1 ] || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
}
to=$1
shift
mkdir -p "$to"
for file in "$@"; do
    cp -f "$file" "$to/"
done
root=$(dirname "$0")/..
rm -f "$to/commit" "$to/sources"
if commit=$(git -C "$root" describe --always --dirty --abbrev=40); then
    echo "$commit" >"$to/commit"
    case $commit in
    *-dirty) ;; # the files differ from the commit
    *) (cd "$root" && git ls-files -z | xargs -0 sha256sum) >"$to/sources" ;;
    esac
fi
cd "$to"
# shellcheck disable=SC2046 # names
apt-get download libdnnl-dev libxxhash-dev libjpeg62-turbo-dev \
    libjpeg62-turbo libpng-dev libpng16-16 libpcre2-dev libpcre2-8-0 \
    zlib1g-dev zlib1g \
    ocl-icd-libopencl1 $(apt-cache depends libdnnl-dev |
        sed -n 's/.*Depends: \(libdnnl[0-9.]*\)$/\1/p')
du -sh .
