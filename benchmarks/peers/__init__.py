"""Programs that run in the peers' own virtual environments; none of them imports Skycrane."""
