
# Names from the running switch, or else the completions of the command line.
_triplane_live() {
    local line=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]} cur found
    if [[ $line == *[[:space:]]ctl[[:space:]]* ]]; then
        found=$("${COMP_WORDS[0]}" ctl __complete --line "$line" 2>/dev/null)
        if [[ -n $found ]]; then
            local IFS=$'\n'
            COMPREPLY=($found)
            # Bash also splits words at `=` and `:`, and replaces only the part after them.
            if [[ $word != [\'\"]* ]]; then
                cur=${line##*[[:space:]]}
                [[ $word == [=:] ]] && word=
                cur=${cur%"$word"}
                COMPREPLY=("${COMPREPLY[@]#"$cur"}")
            fi
            if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=\(\ ] ]]; then
                compopt -o nospace 2>/dev/null
            fi
            return 0
        fi
    fi
    _triplane "$@"
}
complete -F _triplane_live -o bashdefault -o default triplane
