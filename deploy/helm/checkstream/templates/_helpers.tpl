{{- define "checkstream.name" -}}
{{ .Release.Name | trunc 48 | trimSuffix "-" }}
{{- end }}

{{- define "checkstream.labels" -}}
app.kubernetes.io/name: checkstream
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* What tells the pods of a part; takes a list of the root and the part. */}}
{{- define "checkstream.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: checkstream
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Takes a list of the root, a tag and a digest. */}}
{{- define "checkstream.image" -}}
{{- $root := index . 0 -}}
{{- $digest := index . 2 -}}
{{ $root.Values.image.repository }}{{ if $digest }}@{{ $digest }}{{ else }}:{{ index . 1 | default $root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* checkstream.yaml: as the values have it, but for what follows from standing in a pod. */}}
{{- define "checkstream.config" -}}
{{- $server := merge (dict "listen" "0.0.0.0:8080" "admin" "0.0.0.0:9090" "admin_token" (dict "file" "secrets/admin-token")) (.Values.config.server | default dict) -}}
{{- if not (or $server.behind_gateway (and $server.callers (kindIs "slice" $server.callers))) -}}
{{- fail "who may call? List `config.server.callers`, such as [{name: app1, key: {file: secrets/app1}}] with `secrets`, or set `config.server.behind_gateway: true` when a gateway in front knows the callers" -}}
{{- end -}}
{{- toYaml (merge (dict "server" $server) .Values.config) -}}
{{- end }}

{{/* What the pods of all parts have in common, but for their containers. Takes a dict: root, part. */}}
{{- define "checkstream.pod" -}}
{{- $root := .root -}}
{{- $v := $root.Values -}}
serviceAccountName: {{ include "checkstream.name" $root }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $v.imagePullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}{{ end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "checkstream.selector" (list $root .part) | nindent 8 }}
{{- with $v.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What a container may do: nothing. */}}
{{- define "checkstream.unprivileged" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The pod of a part. Takes a dict: root, part (proxy, worker, telemetry), track, image, replicas (null: an autoscaler says), resources. */}}
{{- define "checkstream.deployment" -}}
{{- $root := .root -}}
{{- $v := $root.Values -}}
{{- $proxy := eq .part "proxy" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "checkstream.name" $root }}{{ if not $proxy }}-{{ .part }}{{ end }}{{ if eq .track "canary" }}-canary{{ end }}
  labels: {{- include "checkstream.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .part }}
spec:
  {{- if not (kindIs "invalid" .replicas) }}
  replicas: {{ .replicas }}
  {{- end }}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector:
    matchLabels: {{- include "checkstream.selector" (list $root .part) | nindent 6 }}
      checkstream/track: {{ .track }}
  template:
    metadata:
      labels: {{- include "checkstream.selector" (list $root .part) | nindent 8 }}
        checkstream/track: {{ .track }}
        {{- with $v.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        checkstream/part: {{ .part }}
        {{- if $v.rollOnChange }}
        checksum/config: {{ include (print $root.Template.BasePath "/configmap.yaml") $root | sha256sum }}
        {{- end }}
        {{- with $v.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      {{- include "checkstream.pod" . | nindent 6 }}
      # The running streams may end by themselves; what is left then is ended in good order, and its records are written.
      terminationGracePeriodSeconds: {{ add (div (int (($v.config.server | default dict).drain_ms | default 30000)) 1000) (int $v.preStopSeconds) 15 }}
      containers:
        - name: {{ .part }}
          image: {{ .image }}
          imagePullPolicy: {{ $v.image.pullPolicy }}
          {{- if $proxy }}
          args: [serve, --config, /etc/checkstream/checkstream.yaml, --log, json]
          ports:
            - {name: callers, containerPort: 8080}
            - {name: admin, containerPort: 9090}
          startupProbe: {httpGet: {path: /readyz, port: admin}, periodSeconds: 2, failureThreshold: 150, timeoutSeconds: 2}
          readinessProbe: {httpGet: {path: /readyz, port: admin}, periodSeconds: 2, failureThreshold: 3, timeoutSeconds: 2}
          livenessProbe: {httpGet: {path: /livez, port: admin}, periodSeconds: 10, failureThreshold: 3, timeoutSeconds: 5}
          lifecycle: {preStop: {sleep: {seconds: {{ $v.preStopSeconds }}}}}
          {{- else }}
          args: [{{ if eq .part "worker" }}worker{{ else }}telemetry, ship{{ end }}, --config, /etc/checkstream/checkstream.yaml, --metrics, "0.0.0.0:9090"]
          ports:
            - {name: admin, containerPort: 9090}
          startupProbe: {httpGet: {path: /livez, port: admin}, periodSeconds: 2, failureThreshold: 150, timeoutSeconds: 2}
          livenessProbe: {httpGet: {path: /livez, port: admin}, periodSeconds: 10, failureThreshold: 3, timeoutSeconds: 5}
          {{- end }}
          env:
            - {name: TMPDIR, value: /tmp}
          resources: {{- toYaml .resources | nindent 12 }}
          securityContext: {{- include "checkstream.unprivileged" $root | nindent 12 }}
          volumeMounts:
            - {name: config, mountPath: /etc/checkstream, readOnly: true}
            - {name: state, mountPath: /var/lib/checkstream}
            - {name: tmp, mountPath: /tmp}
      volumes:
        - name: config
          projected:
            defaultMode: 288 # 0440
            sources:
              - configMap:
                  name: {{ include "checkstream.name" $root }}
                  items:
                    - {key: checkstream.yaml, path: checkstream.yaml}
                    {{- range $name, $_ := $v.policies }}
                    - {key: {{ printf "policy.%s" $name }}, path: {{ printf "policies/%s" $name }}}
                    {{- end }}
              - secret:
                  name: {{ $v.adminToken.secret }}
                  items: [{key: {{ $v.adminToken.key }}, path: secrets/admin-token}]
              {{- range $v.secrets }}
              - secret:
                  name: {{ .secret }}
                  items: [{key: {{ .key }}, path: {{ printf "secrets/%s" .name }}}]
              {{- end }}
        - name: state
          {{- if or (eq $v.state.kind "emptyDir") (eq .part "worker") }}
          emptyDir: {sizeLimit: {{ $v.state.size }}}
          {{- else }}
          persistentVolumeClaim: {claimName: {{ if eq $v.state.kind "existing" }}{{ required "name `state.existingClaim`" $v.state.existingClaim }}{{ else }}{{ include "checkstream.name" $root }}{{ end }}}
          {{- end }}
        - {name: tmp, emptyDir: {sizeLimit: 1Gi}}
{{- end }}
