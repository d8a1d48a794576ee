package component

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// Decode keeps of a decoded JSON object what assessments need. It never panics,
// whatever the object holds, and changes nothing in it. With whole set, the
// snapshot shares the object's fields, which the caller must not change
// afterwards.
func Decode(object map[string]any, whole bool) *Snapshot {
	metadata, _ := object["metadata"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	namespace, _ := metadata["namespace"].(string)
	s := &Snapshot{
		UID:                types.UID(uid),
		Namespace:          namespace,
		Terminating:        metadata["deletionTimestamp"] != nil,
		ObservedGeneration: conditions.DecodeNumber(status["observedGeneration"]),
		Conditions:         conditions.Decode(status["conditions"]),
	}
	if generation := conditions.DecodeNumber(metadata["generation"]); generation.State == conditions.NumberPresent {
		s.Generation = generation.Value
	}
	if whole {
		s.Object = withoutNoise(object, metadata)
	}
	return s
}

// withoutNoise drops what changes with every write, so that a heartbeat that
// says nothing new is no change of the snapshot.
func withoutNoise(object, metadata map[string]any) map[string]any {
	kept := maps.Clone(object)
	if metadata != nil {
		m := maps.Clone(metadata)
		delete(m, "managedFields")
		delete(m, "resourceVersion")
		kept["metadata"] = m
	}
	return kept
}
