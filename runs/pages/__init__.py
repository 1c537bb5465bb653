"""What pages show: from a run's state, its codes and the rights read now, to whole translated sentences and rows."""
