
# Names from the running switch, or else the completions of the command line.
_triplane_live() {
    local found
    local -a names
    if (( ${words[(I)ctl]} )); then
        found=$(${words[1]} ctl __complete --line "$LBUFFER" 2>/dev/null)
        if [[ -n $found ]]; then
            names=("${(@f)found}")
            compadd -Q -S '' -- $names
            return 0
        fi
    fi
    _triplane "$@"
}
compdef _triplane_live triplane
