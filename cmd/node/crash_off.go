//go:build !crashpoints

package main

// crashPoints does nothing in a build that people run.
func crashPoints() func(string) { return func(string) {} }

// maxPages is no bound: the disk is one.
func maxPages() int { return 0 }
