#!/usr/bin/env bash
# Install Kilter into an empty prefix, and move the prefix elsewhere. Build an outside project with it, in C and C++, with CMake and with
# pkg-config.
# usage: package_test.sh SOURCE BUILD shared|static [PROGRAM…]
#   shared: install the build folder BUILD, as users do; each PROGRAM must then be installed and run
#   static: configure the folder BUILD/package-static with BUILD's settings, and install the library from there.
# CMAKE, CC, CXX, BUILD_TYPE, MPIS (a list of openmpi, mpich, separated by ";") and CKPT (the target of libkilter-ckpt,
# or nothing) come from the environment.
set -euo pipefail
source=$1 build=$2 kind=$3
shift 3
fail() { echo "package_test: $*" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$source/tests/package

# --- install
if [ "$kind" = static ]; then
    targets=(kilter ${CKPT:+"$CKPT"})
    for mpi in ${MPIS//;/ }; do targets+=("kilter-$mpi"); done
    "$CMAKE" -S "$source" -B "$build/package-static" -G Ninja "-DCMAKE_C_COMPILER=$CC" "-DCMAKE_CXX_COMPILER=$CXX" \
        -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DKILTER_APPS=OFF "-DKILTER_MPI=${MPIS:-OFF}" >/dev/null
    "$CMAKE" --build "$build/package-static" --target "${targets[@]}" >/dev/null
    "$CMAKE" --install "$build/package-static" --component library --prefix "$work/first" >/dev/null
else
    "$CMAKE" --install "$build" --prefix "$work/first" >/dev/null
fi
prefix="$work/a prefix" # the new path has a space; no installed file may contain the old path
mv "$work/first" "$prefix"
! grep -rlF "$source" "$prefix/include" "$prefix"/lib*/cmake "$prefix"/lib*/pkgconfig "$prefix"/lib*/*/cmake 2>/dev/null ||
    fail "these installed files contain the path of the source tree"
[ -e "$prefix/share/doc/kilter/LICENSE" ] || fail "the licence is not installed"

# --- the library exports exactly the functions that the headers declare.
# kilter/loop.h needs MPI: its functions are in the libraries for MPI.
find "$prefix/include/kilter" -name '*.h' ! -name loop.h -exec "$source/tools/public-functions" {} + >"$work/declared"
[ -s "$work/declared" ] || fail "the installed headers declare no function"
if [ "$kind" = shared ]; then
    nm -D --defined-only --format=posix "$(find "$prefix" -name 'libkilter.so')" | awk '{ print $1 }' | sort >"$work/exported"
    LC_ALL=C diff <(LC_ALL=C sort "$work/declared") <(LC_ALL=C sort "$work/exported") >"$work/difference" ||
        fail "the functions that libkilter declares (<) and exports (>) differ:"$'\n'"$(grep '^[<>]' "$work/difference")"
fi

# --- all installed programs and libraries are hardened
hardened=()
[ "$BUILD_TYPE" = Debug ] && hardened=(--debug)
while read -r file; do
    case $file in
    *.a) hardened+=("$file") ;;
    *) [ "$(head -c 4 "$file" | tr -d '\0')" != $'\x7fELF' ] || hardened+=("$file") ;;
    esac
done < <(find "$prefix" -type f)
"$source/tests/rules/hardened_test.sh" "${hardened[@]}" >"$work/soft" || fail "not hardened: $(cat "$work/soft")"

# --- programs
for program in "$@"; do
    "$prefix/bin/$program" --version >"$work/version" || fail "the installed $program --version fails"
    grep -qF "$(sed -n 's/.*KILTER_VERSION "\(.*\)"/\1/p' "$prefix/include/kilter/version.h")" "$work/version" ||
        fail "$program --version says: $(cat "$work/version")"
done

# --- build and run the outside project with CMake and with pkg-config
mkdir "$work/outside"
cp "$here"/CMakeLists.txt "$here"/outside* "$work/outside"
sed 's/.*/FUNCTION(&)/' "$work/declared" >"$work/outside/functions.inc"

run() { # run FILE: run a program; it must find the library without LD_LIBRARY_PATH
    local said
    said=$("$1") || fail "$1 fails"
    grep -q "$(wc -l <"$work/declared") functions" <<<"$said" || fail "$1 says: $said"
}

"$CMAKE" -S "$work/outside" -B "$work/by-cmake" -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_C_COMPILER=$CC" \
    "-DCMAKE_CXX_COMPILER=$CXX" "-DMPIS=$MPIS" >"$work/log" || fail "the outside project could not be configured: $(cat "$work/log")"
"$CMAKE" --build "$work/by-cmake" >"$work/log" || fail "the outside project could not be built with CMake: $(cat "$work/log")"
run "$work/by-cmake/outside_c"
run "$work/by-cmake/outside_cpp"
for program in "$work"/by-cmake/outside_loop*; do
    [ ! -f "$program" ] || "$program" || fail "$(basename "$program"), a program with a loop, fails"
done

library_path=$(dirname "$(find "$prefix" -name "libkilter.*" -print -quit)")
export PKG_CONFIG_PATH=$library_path/pkgconfig
eval "flags=($(pkg-config --cflags --libs kilter))" # eval removes the shell quotes that pkg-config prints
mkdir "$work/by-pkg-config"
"$CC" -std=c11 "$work/outside/outside.c" -o "$work/by-pkg-config/outside_c" "${flags[@]}" "-Wl,-rpath,$library_path"
"$CXX" -std=c++17 "$work/outside/outside.cpp" -o "$work/by-pkg-config/outside_cpp" "${flags[@]}" "-Wl,-rpath,$library_path"
run "$work/by-pkg-config/outside_c"
run "$work/by-pkg-config/outside_cpp"

# --- build a program with a loop by pkg-config, for each MPI; a static program must contain the transport mpi, although no code of the program refers to this transport
for mpi in ${MPIS//;/ }; do
    eval "flags=($(pkg-config --cflags --libs "kilter-$mpi"))"
    "$CC" -std=c11 "$work/outside/outside_loop.c" -o "$work/by-pkg-config/loop_$mpi" "${flags[@]}" "-Wl,-rpath,$library_path"
    "$work/by-pkg-config/loop_$mpi" || fail "a program with a loop for $mpi fails"
    for program in "$work/by-pkg-config/loop_$mpi" "$work/by-cmake/outside_loop_$mpi"; do
        [ "$kind" = shared ] || nm "$program" | grep ' V kl_mpi_library_linked' >/dev/null || fail "$program does not contain the transport mpi"
    done
done
