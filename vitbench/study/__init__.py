"""Running a study: what its file means, which runs it lacks, and the engine that does them."""
