"""Problems, their worlds, how they are worded, and how an answer is judged."""
