"""Files written by `eval-gate init`: inspect the folder, plan, write all or nothing."""
