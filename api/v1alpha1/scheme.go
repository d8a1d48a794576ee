package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "upgradegate.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package in scheme. It fails only when
// scheme already holds other types under the same names.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
		s.AddKnownTypes(GroupVersion, &UpgradeGate{}, &UpgradeGateList{})
		metav1.AddToGroupVersion(s, GroupVersion)
		return nil
	})
	return builder.AddToScheme(scheme)
}
