
# Names of the switch that runs; where there are none, what the command line itself allows.
_triplane_live() {
    local line=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]} cur found
    if [[ $line == *[[:space:]]ctl[[:space:]]* ]]; then
        found=$("${COMP_WORDS[0]}" ctl __complete --line "$line" 2>/dev/null)
        if [[ -n $found ]]; then
            local IFS=$'\n'
            COMPREPLY=($found)
            # Bash cuts words at `=` and `:` too, and replaces what is behind only.
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
