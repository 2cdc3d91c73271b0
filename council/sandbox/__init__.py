"""Foreign code in a cage: what a job is (`job`), the policy of running one (`cage`), a zygote that forks for each job
(`zygotes`), a container for each suite (`containers`), and the program inside both (`inside`)."""
