# council completion for bash. In ~/.bashrc: source <(council completion bash)
_council_completion() {
    local IFS=$'\n'
    COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _COUNCIL_COMPLETE=complete_bash "$1"))
}
complete -o default -F _council_completion council
