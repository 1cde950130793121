// Judges histories of resilient rows with porcupine, and compares its verdicts with those in the histories.
//
// It reads lines of JSON (their form is in crates/resilient/src/simulation/dump.rs) and ends with the line
// "N linearizable, N violations, N undecided, N different". It fails if any verdict differs.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// The time for one history.
const limit = time.Second

// The bit that "toggle" inverts.
const toggled = uint64(1) << 63

type call struct {
	Input    string  `json:"input"`
	Argument uint64  `json:"argument"`
	Called   int64   `json:"called"`
	Returned *int64  `json:"returned"`
	Output   *string `json:"output"`
}

type history struct {
	Seed    uint64 `json:"seed"`
	Row     uint32 `json:"row"`
	Verdict string `json:"verdict"`
	Calls   []call `json:"calls"`
}

// A row: nothing, or a number with its updates and the argument of the last one.
type row struct {
	exists  bool
	number  uint64
	updates uint32
	mark    uint32
}

func (r row) text() string {
	if !r.exists {
		return ""
	}
	return fmt.Sprintf("%016x%08x%08x", r.number, r.updates, r.mark)
}

func (r row) update(number, argument uint64) row {
	return row{true, number, r.updates + 1, uint32(argument)}
}

// Returns the row after an input, and the row that is output.
func step(r row, c call) (row, row) {
	switch c.Input {
	case "read":
		return r, r
	case "add":
		after := r.update(r.number+c.Argument, c.Argument)
		return after, after
	case "set":
		return r.update(c.Argument, c.Argument), r
	case "toggle":
		after := row{true, r.number ^ toggled, r.updates, r.mark}
		return after, after
	case "remove":
		return row{}, r
	}
	panic("unknown input " + c.Input)
}

var model = porcupine.Model{
	Init: func() interface{} { return row{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		c := input.(call)
		after, shown := step(state.(row), c)
		if c.Returned == nil {
			return true, after
		}
		return shown.text() == output.(string), after
	},
}

func operations(h history) []porcupine.Operation {
	all := make([]porcupine.Operation, 0, len(h.Calls))
	for client, c := range h.Calls {
		// An input without output may take effect at the very end, where nobody sees it.
		returned, output := int64(math.MaxInt64), ""
		if c.Returned != nil {
			returned = *c.Returned
		}
		if c.Output != nil {
			output = *c.Output
		}
		all = append(all, porcupine.Operation{ClientId: client, Input: c, Call: c.Called, Output: output, Return: returned})
	}
	return all
}

func judge(h history) string {
	switch porcupine.CheckOperationsTimeout(model, operations(h), limit) {
	case porcupine.Ok:
		return "linearizable"
	case porcupine.Illegal:
		return "violation"
	}
	return "undecided"
}

func main() {
	counts := map[string]int{}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	decoder := json.NewDecoder(lines)
	for decoder.More() {
		var h history
		if err := decoder.Decode(&h); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(2)
		}
		verdict := judge(h)
		counts[verdict]++
		if verdict != h.Verdict && verdict != "undecided" && h.Verdict != "undecided" {
			counts["different"]++
			fmt.Printf("seed %d, row %d: porcupine says %s, ours says %s\n", h.Seed, h.Row, verdict, h.Verdict)
		}
	}
	fmt.Printf("%d linearizable, %d violations, %d undecided, %d different\n",
		counts["linearizable"], counts["violation"], counts["undecided"], counts["different"])
	if counts["different"] > 0 {
		os.Exit(1)
	}
}
