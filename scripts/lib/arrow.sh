# arrow.sh - have Apache Arrow GLib (Parquet) on this machine.
#
# In this order: what pkg-config already finds; the package libparquet-glib-dev where apt knows it;
# a build from Debian's own source package, with its patches, into the cache folder, once per machine
# (about 12 minutes on two cores).
#
# The source is pinned: this version, these files. Where the mirror has moved on, put the files (of
# https://snapshot.debian.org/package/apache-arrow/) into a folder and name it in
# PROMFABRIC_ARROW_SOURCE; or move the pin to what the mirror has, here, after reading what changed.
. "$top/scripts/lib/debian.sh"

arrow_prefix=$cache/arrow-glib
arrow_suite=forky # the Debian release whose source package holds both cpp/ and c_glib/
arrow_version=25.0.0-2
arrow_sha256='
5a33a21439b87cf3428e753f858334a8a258d82bd2becab072a28a7a445be877  apache-arrow_25.0.0-2.dsc
24288e8e898f1d700892aab481e3f77ef48e1a36e859466dc42569aa59644b48  apache-arrow_25.0.0-2.debian.tar.xz
12afc2dc8137bdd4a68876cec939f664c9d55cfc7b75f55b45163ebb4e344d81  apache-arrow_25.0.0.orig.tar.gz
'

arrow_found() { pkg-config --exists 'parquet-glib >= 12'; }

# Make later pkg-config calls of this process see the private build.
arrow_use_prefix() {
    export PKG_CONFIG_PATH=$arrow_prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
}

arrow_ensure() {
    arrow_found && return
    if [ -e "$arrow_prefix/.complete" ]; then
        arrow_use_prefix
        arrow_found && return
        die "$arrow_prefix is damaged: remove it and run the same command again"
    fi
    if [ -n "$(apt-cache policy libparquet-glib-dev 2>/dev/null | awk '/Candidate:/ && $2 != "(none)"')" ]; then
        say "installing libparquet-glib-dev"
        as_root apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends libparquet-glib-dev \
            >"$cache/apt-arrow.log" 2>&1 ||
            die "apt-get could not install libparquet-glib-dev: see $cache/apt-arrow.log"
        arrow_found && return
    fi
    (
        exec 9>"$cache/arrow.lock"
        flock -n 9 || { # two checkouts may be set up at once
            say "another set-up on this machine builds Arrow GLib: waiting for it"
            flock 9
        }
        [ -e "$arrow_prefix/.complete" ] || arrow_build
    )
    arrow_use_prefix
    arrow_found || die "Arrow GLib was built but pkg-config does not find it in $arrow_prefix/lib/pkgconfig"
}

arrow_build() {
    local work=$cache/arrow-build
    say "building Apache Arrow GLib once into $arrow_prefix (about 12 minutes on two cores)"
    rm -rf "$arrow_prefix" "$work"
    mkdir -p "$work"
    arrow_fetch "$work"
    arrow_build_cpp "$work"
    arrow_build_glib "$work"
    touch "$arrow_prefix/.complete"
    rm -rf "$work"
}

arrow_fetch() {
    local work=$1
    private_apt "$work/apt" "$arrow_suite"
    long_step "fetching the package list of $arrow_suite" "$work/update.log" apt-get "${private_apt[@]}" update
    cd "$work"
    if [ -n "${PROMFABRIC_ARROW_SOURCE:-}" ]; then
        cp "$PROMFABRIC_ARROW_SOURCE"/apache-arrow_* .
    else
        long_step "downloading Arrow's source package" "$work/source.log" \
            apt-get "${private_apt[@]}" source --download-only "apache-arrow=$arrow_version"
    fi
    long_step "downloading xsimd's headers" "$work/xsimd.log" \
        apt-get "${private_apt[@]}" download libxsimd-dev xtl-dev
    arrow_unpack
    mkdir -p deps
    local deb
    for deb in ./*.deb; do dpkg -x "$deb" deps; done
}

# In the current folder: check the source package against the pin, and unpack it into src with Debian's
# patches applied. The hashes are ours, so the signature of the .dsc adds nothing.
arrow_unpack() {
    sha256sum --quiet --strict -c - <<<"${arrow_sha256#$'\n'}" ||
        die "the source of Arrow is not the one that scripts/lib/arrow.sh names"
    dpkg-source --no-check -x "apache-arrow_$arrow_version.dsc" src >unpack.log ||
        die "the source of Arrow cannot be unpacked: see $PWD/unpack.log"
}

arrow_build_cpp() {
    local work=$1
    long_step "configuring Arrow C++" "$work/cpp-configure.log" \
        cmake -S "$work/src/cpp" -B "$work/cpp" -GNinja \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" \
        -DCMAKE_INSTALL_PREFIX="$arrow_prefix" -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_INSTALL_RPATH='$ORIGIN' -DCMAKE_PREFIX_PATH="$work/deps/usr" \
        -DARROW_DEPENDENCY_SOURCE=SYSTEM -DARROW_RUNTIME_SIMD_LEVEL=AVX2 \
        -DARROW_PARQUET=ON -DARROW_COMPUTE=ON -DARROW_ACERO=ON -DARROW_CSV=ON -DARROW_JSON=ON \
        -DARROW_FILESYSTEM=ON -DARROW_IPC=ON \
        -DARROW_WITH_ZSTD=ON -DARROW_WITH_SNAPPY=ON -DARROW_WITH_LZ4=ON \
        -DARROW_WITH_RE2=OFF -DARROW_WITH_UTF8PROC=OFF \
        -DARROW_JEMALLOC=OFF -DARROW_MIMALLOC=OFF \
        -DARROW_BUILD_STATIC=OFF -DARROW_BUILD_TESTS=OFF -DCMAKE_UNITY_BUILD=ON
    long_step "compiling Arrow C++" "$work/cpp-build.log" ninja -C "$work/cpp" -j "$jobs" install
}

arrow_build_glib() {
    local work=$1 rpath="-Wl,-rpath,$arrow_prefix/lib"
    export PKG_CONFIG_PATH=$arrow_prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
    long_step "configuring Arrow GLib" "$work/glib-configure.log" \
        meson setup "$work/glib" "$work/src/c_glib" --buildtype=release --prefix="$arrow_prefix" \
        --libdir=lib -Dgtk_doc=false -Dc_link_args="$rpath" -Dcpp_link_args="$rpath"
    long_step "compiling Arrow GLib" "$work/glib-build.log" ninja -C "$work/glib" -j "$jobs" install
}
