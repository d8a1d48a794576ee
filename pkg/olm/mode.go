package olm

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// Discovery lists what the API server serves; a discovery.DiscoveryClient does.
type Discovery interface {
	ServerGroupsWithContext(ctx context.Context) (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// DetectMode finds out which OLM installed us. conditionName is the value of
// OPERATOR_CONDITION_NAME, which OLM v0 alone injects (operator-lifecycle-manager,
// pkg/controller/install/deployment.go): if it is there, nobody else is asked.
// Without it, OLM v1 is assumed where ClusterExtensions are served, in whichever
// version. An error means that it could not be found out.
func DetectMode(ctx context.Context, conditionName string, d Discovery) (v1alpha1.OLMMode, error) {
	if conditionName != "" {
		return v1alpha1.OLMModeV0, nil
	}
	groups, err := d.ServerGroupsWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("detecting OLM: listing the API groups: %w", err)
	}
	for _, group := range groups.Groups {
		if group.Name != "olm.operatorframework.io" {
			continue
		}
		for _, version := range group.Versions {
			resources, err := d.ServerResourcesForGroupVersionWithContext(ctx, version.GroupVersion)
			if err != nil {
				return "", fmt.Errorf("detecting OLM: listing the resources of %s: %w", version.GroupVersion, err)
			}
			if slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == "ClusterExtension" }) {
				return v1alpha1.OLMModeV1, nil
			}
		}
	}
	return v1alpha1.OLMModeNone, nil
}
