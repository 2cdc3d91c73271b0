# council completion for fish: council completion fish > ~/.config/fish/completions/council.fish
function __council_complete
    env _COUNCIL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \
        _TYPER_COMPLETE_ARGS=(commandline -cp) council
end
complete --command council --no-files --arguments "(__council_complete get-args)" \
    --condition "__council_complete is-args"
