"""Foreign code in a cage. `job` says what a job is, `cage` has the policy of running one. `zygotes` fork for each job,
`containers` hold a suite, and `inside` is the program inside both."""
