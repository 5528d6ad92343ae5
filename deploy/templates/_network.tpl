{{- /* NetworkPolicies: ports of this site, its servers for names, who may connect to the gateway. Argument: object, root. */ -}}
{{- define "network.change" -}}
{{- $values := .root.Values -}}
{{- $spec := .object.spec -}}
{{- $name := .object.metadata.name -}}
{{- if eq $name "names" -}}
{{- $patch := .root.Files.Get (printf "sites/%s/network.yaml" $values.site.preset) -}}
{{- if $patch }}{{ $_ := mergeOverwrite $spec (fromYaml $patch).spec }}{{ end -}}
{{- else if eq $name "to-data" }}{{ include "network.ports" (dict "rule" (first $spec.egress) "ports" $values.network.data) -}}
{{- else if eq $name "to-cluster" }}{{ include "network.ports" (dict "rule" (first $spec.egress) "ports" $values.network.apiServer) -}}
{{- else if eq $name "to-mail" }}{{ include "network.ports" (dict "rule" (first $spec.egress) "ports" $values.network.mail) -}}
{{- else if eq $name "to-issuer" -}}
{{- $rule := first $spec.egress -}}
{{- include "network.ports" (dict "rule" $rule "ports" (list $values.issuer.port)) -}}
{{- $_ := set $rule "to" (include "network.blocks" $values.issuer.addresses | fromJsonArray) -}}
{{- else if eq $name "to-prometheus" -}}
{{- $rule := first $spec.egress -}}
{{- include "network.ports" (dict "rule" $rule "ports" $values.network.prometheus) -}}
{{- with $values.network.monitoringNamespace -}}
{{- $_ := set $rule "to" (include "network.namespaces" (list .) | fromJsonArray) -}}
{{- end -}}
{{- else if eq $name "from-monitoring" -}}
{{- with $values.network.monitoringNamespace -}}
{{- $_ := set (first $spec.ingress) "from" (include "network.namespaces" (list .) | fromJsonArray) -}}
{{- end -}}
{{- else if eq $name "from-outside" -}}
{{- $rule := first $spec.ingress -}}
{{- if include "exposure.is-plain" .root }}{{ include "network.ports" (dict "rule" $rule "ports" (list 8080)) }}{{ end -}}
{{- $from := concat (include "network.namespaces" $values.exposure.from.namespaces | fromJsonArray) (include "network.blocks" $values.exposure.from.networks | fromJsonArray) -}}
{{- if $from -}}
{{- /* The pod of `helm test`. */ -}}
{{- $test := dict "podSelector" (dict "matchLabels" (dict "app.kubernetes.io/component" "health")) -}}
{{- $_ := set $rule "from" (append $from $test) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "network.ports" -}}
{{- $ports := list -}}
{{- range .ports }}{{ $ports = append $ports (dict "protocol" "TCP" "port" .) }}{{ end -}}
{{- if $ports }}{{ $_ := set .rule "ports" $ports }}{{ end -}}
{{- end -}}

{{- define "network.blocks" -}}
{{- $peers := list -}}
{{- range . }}{{ $peers = append $peers (dict "ipBlock" (dict "cidr" .)) }}{{ end -}}
{{- $peers | toJson -}}
{{- end -}}

{{- define "network.namespaces" -}}
{{- $peers := list -}}
{{- range . }}{{ $peers = append $peers (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" .))) }}{{ end -}}
{{- $peers | toJson -}}
{{- end -}}
