# page.sh - have the packages of the page on this machine: web/package-lock.json says which.

page_folder=$cache/page-$(sha256sum "$top/web/package-lock.json" | cut -c1-16)
page_modules=$page_folder/node_modules

page_ensure() (
    exec 8>"$page_folder.lock" && flock 8 || exit 1 # several builds may want it at once
    [ -e "$page_folder/.complete" ] && exit 0
    command -v npm >/dev/null || die "the page needs node and npm: run scripts/setup"
    rm -rf "$page_folder"
    mkdir -p "$page_folder"
    cp "$top/web/package.json" "$top/web/package-lock.json" "$page_folder/"
    # No package runs anything of its own here.
    long_step "installing the packages of the page" "$cache/page-install.log" \
        npm ci --prefix "$page_folder" --ignore-scripts --no-audit --no-fund
    touch "$page_folder/.complete"
)
