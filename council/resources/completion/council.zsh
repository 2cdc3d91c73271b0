#compdef council
# council completion for zsh. In ~/.zshrc, after compinit: source <(council completion zsh)
_council_completion() {
    eval $(_TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _COUNCIL_COMPLETE=complete_zsh council)
}
compdef _council_completion council
