package letters

// What is asked at each look at the letters that wait.
const (
	SelectNext  = selectNext
	SelectTurns = selectTurns
)
