// Package sim holds the simulator of replication: tests, and nothing that a node
// runs. One process holds both nodes with the product's own code and real files.
// Their clocks, the line between them and all that goes wrong follow from a seed, one
// step after the other, so that a seed that fails can be read as a story and told
// again. What ought to come of it is known from a model that remembers each version
// ever written and which versions each node has met.
//
// docs/simulation.md says how to run it and what it has covered.
package sim
