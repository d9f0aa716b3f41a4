"""Git as this program uses it for itself: nothing that a repository's configuration names is ever started."""
