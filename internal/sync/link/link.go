// Package link is how the logs of two nodes talk: the calls under /peer/v1/, both
// the side that calls, which is the node at home, and the side that answers. What
// is in a log and who wins is package sync's; link moves it, and says how it goes.
package link
