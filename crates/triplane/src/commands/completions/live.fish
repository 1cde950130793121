
# Names from the running switch.
complete -c triplane -n "__fish_seen_subcommand_from ctl" -f -a "(triplane ctl __complete --line (commandline -cp | string collect) 2>/dev/null)"
