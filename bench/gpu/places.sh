# shellcheck shell=sh
# Sourced by gpu.sh: where compiler, libraries and headers are on this machine,
# and what it is.

# append VARIABLE FOLDER
append() {
    eval "$1=\${$1:+\$$1:}\$2"
    # shellcheck disable=SC2163 # the name of a variable
    export "$1"
}

# NVIDIA's libraries as Python packages: nvidia/*/lib beside PyTorch, and what
# programs those have.
python_folders() {
    "$PYTHON" - <<'END'
import glob, os, sys, sysconfig
paths = dict.fromkeys([sysconfig.get_path("purelib"), *sys.path])
wanted = ("libcudnn.so", "libnvrtc.so", "libcublasLt.so", "libnvtx3interop.so")
for path in paths:
    for folder in sorted(glob.glob(os.path.join(path, "nvidia", "*", "lib"))):
        if any(name.startswith(wanted) for name in os.listdir(folder)):
            print(folder)
END
}

# unpack_packages DIR: what bench/carry.sh has gathered there, unpacked once.
unpack_packages() {
    there=$1/root
    for file in "$1"/*.deb; do
        if [ ! -f "$file" ] || [ -f "$there/$(basename "$file").done" ]; then
            continue
        fi
        mkdir -p "$there"
        if command -v dpkg-deb >/dev/null; then
            dpkg-deb -x "$file" "$there"
        else
            (cd "$there" && ar x "$file" && tar xf data.tar.* && rm -f data.tar.* \
                control.tar.* debian-binary)
        fi && : >"$there/$(basename "$file").done"
    done
    [ -d "$there/usr" ] || return
    for folder in "$there"/usr/include/*-linux-gnu "$there/usr/include"; do
        [ -d "$folder" ] || continue
        append C_INCLUDE_PATH "$folder"
        append CMAKE_INCLUDE_PATH "$folder"
    done
    for folder in "$there"/usr/lib/*-linux-gnu "$there"/lib/*-linux-gnu; do
        [ -d "$folder" ] || continue
        append LIBRARY_PATH "$folder"
        append CMAKE_LIBRARY_PATH "$folder"
        append LD_LIBRARY_PATH "$folder"
    done
}

# The first of these commands that there is, or of these files.
first_of() {
    for program in "$@"; do
        command -v "$program" && return
    done
}

# places_find PACKAGES: sets what the compiler, CMake and the loader look at, and
# PYTHON and SANITIZER, empty where there is none.  Where LD_LIBRARY_PATH leads
# already comes first.
places_find() {
    PYTHON=${PYTHON:-$(first_of python3 python)}
    [ -z "$PYTHON" ] || for folder in $(python_folders); do
        append LD_LIBRARY_PATH "$folder"
        [ ! -d "${folder%/lib}/bin" ] || append PATH "${folder%/lib}/bin"
    done
    # Where containers have the driver, if it is not found without.
    for folder in /usr/local/nvidia /usr/local/cuda; do
        [ ! -d $folder/bin ] || append PATH $folder/bin
    done
    [ ! -e /usr/local/nvidia/lib64/libcuda.so.1 ] ||
        append LD_LIBRARY_PATH /usr/local/nvidia/lib64
    [ -z "$1" ] || unpack_packages "$1"
    SANITIZER=$(first_of compute-sanitizer \
        /usr/local/cuda*/compute-sanitizer/compute-sanitizer \
        /opt/nvidia/*/compute-sanitizer)
    export PYTHON SANITIZER LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
}

# library_files: the libraries that trainers open, where the loader finds the
# first of each, with those that are beside it.
library_files() {
    {
        for folder in $(echo "$LD_LIBRARY_PATH" | tr : ' '); do
            ls "$folder"/lib* 2>/dev/null
        done
        ldconfig -p | sed -n 's/.* => //p'
    } | grep -E '/lib(cudnn|nvrtc|cublasLt)[^/]*[.]so[.0-9]*$' | awk '
        match($0, /[^\/]*$/) {
            folder = substr($0, 1, RSTART - 1)
            name = substr($0, RSTART + 3, 4)
            if (!(name in first))
                first[name] = folder
            if (first[name] == folder)
                print
        }' | xargs -r realpath -e -q | sort -u
}

# libraries_read: a row of how much they are and how long it took to read them,
# after which they are in memory; then PyTorch is.
libraries_read() {
    files=$(library_files)
    [ -n "$files" ] || return
    from=$(date +%s%N)
    bytes=$(echo "$files" | xargs cat | wc -c)
    row "libraries read" $((bytes >> 20)) MiB \
        "in $((($(date +%s%N) - from) / 1000000)) ms"
    [ -z "$PYTHON" ] || "$PYTHON" -c 'import torch' 2>/dev/null
}

# smi FIELD: what nvidia-smi says of the GPU.
smi() {
    ordinal=${DEVICE#cuda}
    timeout 10 nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits \
        --id="${ordinal#:}" 2>/dev/null
}

gpu_slug() {
    name=$(smi name | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
    echo "${name:-unknown}"
}

# pytorch_version: without what importing it takes, which is seconds from a cold
# disk.
pytorch_version() {
    "$PYTHON" - <<'END'
import importlib.util, os, runpy
folder = os.path.dirname(importlib.util.find_spec("torch").origin)
print(runpy.run_path(os.path.join(folder, "version.py"))["__version__"])
END
}

# tell NAME UNIT COMMAND...: a row of what it prints first, if it prints
# anything.
tell() {
    name=$1 unit=$2
    shift 2
    said=$("$@" 2>/dev/null | head -n 1 | tr '\t' ' ')
    [ -z "$said" ] || row "$name" "$said" "$unit"
}

# commit_of PACKAGES: the sources', or where those have no history, what was
# carried with them, if they are still that.
commit_of() {
    git -c safe.directory='*' -C "$ROOT" describe --always --dirty \
        --abbrev=40 && return
    read -r commit <"$1/commit" || return
    (cd "$ROOT" && sha256sum --status -c "$1/sources") ||
        commit=${commit%-dirty}-dirty
    echo "$commit"
}

# describe_machine PACKAGES
describe_machine() {
    tell date '' date -u +%Y-%m-%dT%H:%M:%SZ
    tell commit '' commit_of "$1"
    tell name '' smi name
    tell driver_version '' smi driver_version
    tell memory.total MiB smi memory.total
    tell clocks.max.sm MHz smi clocks.max.sm
    tell clocks.max.memory MHz smi clocks.max.memory
    tell power.limit W smi power.limit
    tell persistence_mode '' smi persistence_mode
    tell kernel '' uname -sr
    tell processor '' sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo
    tell cores '' nproc
    tell compiler '' "${CC:-cc}" --version
    tell nvcc '' sh -c 'nvcc --version | grep release'
    [ -z "$PYTHON" ] || tell pytorch '' pytorch_version
}
