"""Files for tools: paths, patterns, walks, whole texts, differences, pictures, and how they were before."""
